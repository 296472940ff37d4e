"""The real server in a process of its own, on free ports: what rpc, server and client tests use."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

_BANNER = re.compile(r"on localhost:(\d+), metrics on http://localhost:(\d+)/metrics")


@dataclass(frozen=True)
class RunningServer:
    """A server that has said what it serves."""

    process: subprocess.Popen[str]
    banner: str
    port: int
    metrics_port: int

    @property
    def address(self) -> str:
        return f"localhost:{self.port}"

    def metrics(self) -> str:
        with urlopen(f"http://localhost:{self.metrics_port}/metrics") as response:
            text: str = response.read().decode()
        return text


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
def running_server(models: Path, *flags: str) -> Iterator[RunningServer]:
    """Serves `models` until the end of the block, then kills what is left."""
    process = subprocess.Popen(
        _command("serve", "--models", str(models), "--port=0", "--metrics-port=0", *flags),
        env=_environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            assert process.stdout is not None
            banner = process.stdout.readline()
            ports = _BANNER.search(banner)
            assert ports, f"the server said {banner!r}"
            yield RunningServer(process, banner, int(ports[1]), int(ports[2]))
        finally:
            process.kill()


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "service", *arguments]


def _environment(**changes: str) -> dict[str, str]:
    return {"OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8", **os.environ, **changes}
