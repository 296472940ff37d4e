"""Servers in processes of their own, and what the kernel and their metrics say about them.

Reads /proc: Linux only. Servers listen on loopback, on free ports, and are killed at the end.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from bench.load import Report

# What both servers print once they serve.
_BANNER = re.compile(r"on localhost:(\d+), metrics on http://localhost:(\d+)/metrics")
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """A server that has said that it serves, `start_seconds` after it was executed."""

    process: "subprocess.Popen[str]"
    port: int
    metrics_port: int
    start_seconds: float

    @property
    def address(self) -> str:
        return f"localhost:{self.port}"

    def cpu_seconds(self) -> float:
        """Processor time of all its threads so far, user and system."""
        # The fields count from behind the name, which may hold spaces.
        fields = self._read("stat").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS_PER_SECOND

    def memory_mib(self) -> tuple[float, float]:
        """Resident memory, now and at its highest, in MiB."""
        kib = dict(re.findall(r"^(VmRSS|VmHWM):\s+(\d+) kB", self._read("status"), re.MULTILINE))
        return int(kib["VmRSS"]) / 1024, int(kib["VmHWM"]) / 1024

    def counters(self) -> dict[str, float]:
        """Its metrics by name, summed over their labels."""
        with urlopen(f"http://localhost:{self.metrics_port}/metrics") as response:
            text = response.read().decode()
        sums: dict[str, float] = defaultdict(float)
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                sums[sample.name] += sample.value
        return sums

    def _read(self, name: str) -> str:
        return Path(f"/proc/{self.process.pid}/{name}").read_text()


@contextmanager
def our_server(models: Path, *flags: str) -> Iterator[ServerProcess]:
    """The service, with all bundles of a directory."""
    command = ["service", "serve", "--models", str(models), "--port=0", "--metrics-port=0", *flags]
    with _running(command) as server:
        yield server


@contextmanager
def peer_server(model: Path, tokenizer: Path, *flags: str) -> Iterator[ServerProcess]:
    """The server around ctranslate2."""
    with _running(["bench.ctranslate2_server", str(model), str(tokenizer), *flags]) as server:
        yield server


@contextmanager
def _running(module_and_flags: Sequence[str]) -> Iterator[ServerProcess]:
    started = time.perf_counter()
    command = [sys.executable, "-m", *module_and_flags]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            banner = process.stdout.readline()
            seconds = time.perf_counter() - started
            ports = _BANNER.search(banner)
            if not ports:
                raise RuntimeError(f"{' '.join(command)} did not start; it said {banner!r}")
            yield ServerProcess(process, int(ports[1]), int(ports[2]), seconds)
        finally:
            process.kill()


class LoadProcess:
    """`bench.load` on servers of this machine, in a process of its own for every load."""

    def __init__(self, sentences: Sequence[str], scratch: Path, seconds: float) -> None:
        self._sentences = scratch / "sentences.txt"
        self._sentences.write_text("\n".join(sentences) + "\n", encoding="utf-8")
        self._seconds = seconds

    def run(self, address: str, flags: Sequence[str], seconds: float | None = None) -> Report:
        """What came of the load. Raises CalledProcessError if the generator failed."""
        command = [sys.executable, "-m", "bench.load", address, "--json", *flags]
        command += [f"--sentences={self._sentences}", f"--seconds={seconds or self._seconds}"]
        result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        return Report(**json.loads(result.stdout))
