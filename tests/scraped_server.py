"""A real Prometheus that scrapes a real server under load, with the repository's own rules."""

import json
import math
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import urlopen

from service.client import Access, Client
from service.errors import TranslationError
from service.pb import translation_pb2 as pb
from tests.pems import Pems
from tests.running_server import RunningServer, eventually, running_server
from tests.tiny_bundle import tiny_bundle

OBSERVABILITY = Path(__file__).parent.parent / "deploy" / "observability"
# Small, so that callers who send that many sentences at once are refused.
_MAX_QUEUE = 32
_NUM_CALLERS = 3
_CONFIG = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}/recording.yaml, {rules}/alerts.yaml]
scrape_configs:
  - {{job_name: nmt, static_configs: [{{targets: ["localhost:{port}"]}}]}}
"""
_VARIABLES = {"$job": "nmt", "$model": ".*", "$__rate_interval": "10s"}


@dataclass(frozen=True)
class Panel:
    """One query of the dashboard."""

    title: str
    query: str
    legend: str


@dataclass(frozen=True)
class Prometheus:
    """A running Prometheus."""

    url: str

    def get(self, path: str, **parameters: str) -> Any:
        """The data of an answer of the HTTP API. Raises ValueError if it is an error."""
        try:
            with urlopen(f"{self.url}/api/v1/{path}?{urlencode(parameters)}") as response:
                return json.load(response)["data"]
        except HTTPError as error:
            raise ValueError(json.load(error)["error"]) from error

    def query(self, expression: str) -> dict[str, float]:
        """The value of each series, by its labels as JSON; those that are no number are left out.

        Raises ValueError if the expression is none.
        """
        result = self.get("query", query=expression)["result"]
        values = {json.dumps(each["metric"]): float(each["value"][1]) for each in result}
        return {labels: value for labels, value in values.items() if not math.isnan(value)}

    def is_ready(self) -> bool:
        with suppress(URLError, ConnectionError), urlopen(f"{self.url}/-/ready") as response:
            return bool(response.status == 200)
        return False


def panels() -> list[Panel]:
    """Every query of the dashboard, with the variables that Grafana would fill in."""
    dashboard = json.loads((OBSERVABILITY / "dashboard.json").read_text())
    return [
        Panel(panel["title"], _filled_in(target["expr"]), target.get("legendFormat", ""))
        for panel in dashboard["panels"]
        for target in panel.get("targets", ())
    ]


@contextmanager
def scraped_server(folder: Path) -> Iterator[tuple[RunningServer, Prometheus]]:
    """Serves two tiny models with TLS, under load, to callers who fail in every usual way.

    A third one is broken, so that a reload fails, too.
    """
    for architecture in ("bahdanau", "transformer"):
        tiny_bundle(folder / "models" / architecture, architecture)
    queue = f"--max-queue-sentences={_MAX_QUEUE}"
    pems = Pems(folder)
    tls = (*pems.flags, "--health-port=0")
    flags = ("--default-model=tiny-transformer", "--workers=1", queue, *tls)
    with (
        running_server(folder / "models", *flags, log_file=folder / "server.log") as server,
        running_prometheus(folder / "prometheus", server.metrics_port) as prometheus,
        _under_load(server, Access(ca=pems.ca)),
    ):
        eventually(lambda: prometheus.query("nmt_reloads_total"))
        broken = folder / "models" / "broken"
        broken.mkdir()
        (broken / "bundle.json").write_text("{}")
        server.process.send_signal(signal.SIGHUP)
        yield server, prometheus


@contextmanager
def running_prometheus(folder: Path, metrics_port: int) -> Iterator[Prometheus]:
    """Scrapes a port once a second and evaluates the rules, until the end of the block."""
    folder.mkdir()
    config = folder / "prometheus.yaml"
    config.write_text(_CONFIG.format(rules=OBSERVABILITY, port=metrics_port))
    program = shutil.which("prometheus")
    assert program, "Debian's package prometheus has it"
    with socket.create_server(("localhost", 0)) as probe:
        address = f"localhost:{probe.getsockname()[1]}"
    command = [
        program,
        f"--config.file={config}",
        f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address={address}",
    ]
    with (folder / "log").open("w") as log, subprocess.Popen(command, stderr=log) as process:
        try:
            prometheus = Prometheus(f"http://{address}")
            eventually(prometheus.is_ready)
            yield prometheus
        finally:
            process.terminate()


@contextmanager
def _under_load(server: RunningServer, access: Access) -> Iterator[None]:
    stop = Event()

    def call_until_stopped() -> None:
        with (
            Client(server.address, access=access) as client,
            Client(server.address, 0.02, access) as hasty,
        ):
            calls = _calls(client, hasty)
            while not stop.wait(0.02):
                for call in calls:
                    with suppress(TranslationError):
                        call()

    threads = [Thread(target=call_until_stopped) for _ in range(_NUM_CALLERS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _calls(client: Client, hasty: Client) -> list[Callable[[], object]]:
    """To both models; many sentences at once, also without the time they need; and one mistake."""
    short = pb.TranslateRequest(contents=["hello world", "good morning"])
    other = pb.TranslateRequest(contents=["hello world"], model="tiny-bahdanau")
    long = pb.TranslateRequest(contents=["hello world"] * _MAX_QUEUE)
    wrong = pb.TranslateRequest(contents=["hello world"], model="unknown")
    return [
        lambda: client.translate(short),
        lambda: client.translate(other),
        lambda: client.translate(long),
        lambda: client.translate(wrong),
        lambda: hasty.translate(long),
        client.list_models,
    ]


def _filled_in(expression: str) -> str:
    for variable, value in _VARIABLES.items():
        expression = expression.replace(variable, value)
    assert not re.search(r"\$\w", expression), f"an unknown variable in {expression}"
    return expression
