"""The real server in a process of its own, on free ports: what rpc, server and client tests use."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

_BANNER = re.compile(
    r"on localhost:(?P<port>\d+), metrics on http://localhost:(?P<metrics_port>\d+)/metrics"
    r"(, health on localhost:(?P<health_port>\d+))?(, admin on localhost:(?P<admin_port>\d+))?;"
)
_PATIENCE = 30  # seconds


@dataclass(frozen=True)
class RunningServer:
    """A server that has said what it serves; a port that it hasn't opened is 0."""

    process: subprocess.Popen[str]
    banner: str
    port: int
    metrics_port: int
    health_port: int = 0
    admin_port: int = 0
    log_file: Path | None = None

    @property
    def address(self) -> str:
        return f"localhost:{self.port}"

    def metrics(self) -> str:
        with urlopen(f"http://localhost:{self.metrics_port}/metrics") as response:
            text: str = response.read().decode()
        return text

    def sample(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples that have these labels."""
        families = text_string_to_metric_families(self.metrics())
        return sum(
            sample.value
            for family in families
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    def log(self) -> str:
        """What the server has logged so far."""
        assert self.log_file, "not kept"
        return self.log_file.read_text()


def eventually(condition: Callable[[], object]) -> None:
    """Returns once it is so; fails if that takes too long."""
    deadline, pause = time.monotonic() + _PATIENCE, Event()
    while not condition():
        assert time.monotonic() < deadline, "it was in vain"
        pause.wait(0.01)


def run_service(
    *arguments: str, input: str = "", **environment: str
) -> "subprocess.CompletedProcess[str]":
    """Runs `python -m service` to its end."""
    return subprocess.run(
        _command(*arguments),
        input=input,
        env=_environment(**environment),
        capture_output=True,
        text=True,
        timeout=60,
    )


@contextmanager
def running_server(
    models: Path, *flags: str, log_file: Path | None = None
) -> Iterator[RunningServer]:
    """Serves `models` until the end of the block, then kills what is left.

    log_file: where the log is kept; without it, it is the test's own stderr.
    """
    with ExitStack() as stack:
        log = stack.enter_context(log_file.open("w")) if log_file else None
        command = _command("serve", f"--models={models}", "--port=0", "--metrics-port=0", *flags)
        process = stack.enter_context(
            subprocess.Popen(
                command, env=_environment(), stdout=subprocess.PIPE, stderr=log, text=True
            )
        )
        stack.callback(process.kill)
        assert process.stdout is not None
        banner = process.stdout.readline()
        found = _BANNER.search(banner)
        assert found, f"the server said {banner!r}"
        ports = {name: int(port or 0) for name, port in found.groupdict().items()}
        yield RunningServer(process, banner, **ports, log_file=log_file)


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "service", *arguments]


def _environment(**changes: str) -> dict[str, str]:
    return {"OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8", **os.environ, **changes}
