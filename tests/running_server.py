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
from select import select
from threading import Event
from typing import TypeVar
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from tests.corpus import ROOT

_BANNER = re.compile(
    r"on localhost:(?P<port>\d+), metrics on http://localhost:(?P<metrics_port>\d+)/metrics"
    r"(, health on localhost:(?P<health_port>\d+))?(, admin on localhost:(?P<admin_port>\d+))?;"
)
_PATIENCE = 30  # seconds
_Value = TypeVar("_Value")


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


def eventually(condition: Callable[[], _Value]) -> _Value:
    """What there is once there is something; fails if that takes too long."""
    deadline, pause = time.monotonic() + _PATIENCE, Event()
    while not (value := condition()):
        assert time.monotonic() < deadline, "it was in vain"
        pause.wait(0.01)
    return value


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
    models: Path, *flags: str, log_file: Path | None = None, module: str = "service"
) -> Iterator[RunningServer]:
    """Serves `models` until the end of the block, then kills what is left.

    log_file: where the log is kept; without it, it is the test's own stderr. A server that logs
        JSON needs one.
    module: whose command line it is.
    """
    with ExitStack() as stack:
        log = stack.enter_context(log_file.open("w")) if log_file else None
        ports = ("--port=0", "--metrics-port=0")
        process = stack.enter_context(
            subprocess.Popen(
                _command("serve", f"--models={models}", *ports, *flags, module=module),
                cwd=ROOT,
                env=_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        )
        stack.callback(process.kill)
        banner = _banner_of(process, log_file)
        found = _BANNER.search(banner)
        assert found, f"the server said {banner!r}"
        opened = {name: int(port or 0) for name, port in found.groupdict().items()}
        yield RunningServer(process, banner, **opened, log_file=log_file)


def _banner_of(process: "subprocess.Popen[str]", log_file: Path | None) -> str:
    """The first line on standard output, or that in the log of a server that logs JSON."""
    assert process.stdout is not None
    while log_file and not select([process.stdout], [], [], 0.05)[0]:
        for line in log_file.read_text().splitlines():
            if _BANNER.search(line):
                return line
    return process.stdout.readline()


def _command(*arguments: str, module: str = "service") -> list[str]:
    return [sys.executable, "-m", module, *arguments]


def _environment(**changes: str) -> dict[str, str]:
    return {"OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8", **os.environ, **changes}
