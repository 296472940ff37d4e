"""The server under independent callers, beside a server around ctranslate2.

Both processes live through the whole workload and take turns; rates are shares of the peer's
capacity, so that both meet the same arrivals. Server and load share the cores of this machine.
"""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from bench.ctranslate2_server import BATCHES, SENTENCES
from bench.load import Report
from bench.processes import LoadProcess, ServerProcess, our_server, peer_server
from bench.settings import Settings
from bench.systems import Peer
from bench.table import Row

OURS, PEER = "this server", "ctranslate2 server"
FRACTIONS = (0.25, 0.5, 0.75, 0.9, 1.1)
PER_CALL = (1, 16)
_IN_FLIGHT = 256
"""Sentences that the callers of a saturated server have open."""
_BATCH_SIZES = (32, 64, 128)
_ROUNDS = 3
_PER_CPU = "sentences/CPU s"


def server(settings: Settings) -> Iterator[Row]:
    """Empty calls, then for 1 and 16 sentences a call: saturation, and shares of the capacity."""
    bundle = settings.bundle("transformer")
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        peer = Peer.write(bundle, scratch / "peer")
        tokenizer = scratch / "source.model"
        tokenizer.write_bytes(bundle.tokenizer_bytes("source"))
        load = LoadProcess(settings.corpus.sources, scratch, settings.seconds)
        command = peer.directory, tokenizer, f"--compute-type={peer.compute_type}"
        servers = {
            OURS: stack.enter_context(our_server(settings.models)),
            PEER: stack.enter_context(peer_server(*command, _fastest(command, load))),
        }
        yield from _Duel(servers, load, bundle.manifest.name, settings.rounds).rows()


def _fastest(command: tuple[Path, Path, str], load: LoadProcess) -> str:
    """The flag with which the peer answers most single sentences."""
    goodput = {}
    for size in _BATCH_SIZES:
        flag = f"--max-batch={size}"
        with peer_server(*command, flag) as process:
            report = load.run(process.address, [f"--concurrency={_IN_FLIGHT}"])
        goodput[flag] = report.goodput
    return max(goodput, key=lambda flag: goodput[flag])


class _Duel:
    """The servers by name, and the load on them."""

    def __init__(
        self, servers: Mapping[str, ServerProcess], load: LoadProcess, model: str, rounds: int
    ) -> None:
        self._servers = servers
        self._load = load
        self._model = model
        self._rounds = min(rounds, _ROUNDS)

    def rows(self) -> Iterator[Row]:
        yield from self._saturated("empty call", 1, "--empty")[1]
        for per_call in PER_CALL:
            case = f"{per_call} a call"
            capacities, rows = self._saturated(case, per_call)
            yield from rows
            for fraction in FRACTIONS:
                rate = max(1.0, fraction * capacities[PEER] / per_call)
                flags = [f"--rate={rate}", f"--per-call={per_call}"]
                yield from self._rows(f"{case}, {fraction:.0%}", flags)[1]

    def _saturated(
        self, case: str, per_call: int, *flags: str
    ) -> tuple[dict[str, float], list[Row]]:
        concurrency = f"--concurrency={max(1, _IN_FLIGHT // per_call)}"
        return self._rows(f"{case}, saturated", [concurrency, f"--per-call={per_call}", *flags])

    def _rows(self, case: str, flags: list[str]) -> tuple[dict[str, float], list[Row]]:
        """Goodput by server, and a row for each: medians of rounds in turns."""
        found: dict[str, list[dict[str, float]]] = {name: [] for name in self._servers}
        for seed in range(self._rounds):
            for name, process in self._servers.items():
                found[name].append(self._measure(name, process, [*flags, f"--seed={seed}"]))
        medians = {
            name: {key: median(one[key] for one in each) for key in each[0]}
            for name, each in found.items()
        }
        rows = []
        for name, values in medians.items():
            row: dict[str, float | str] = {**values, "failed": f"{values['failed']:.0f}"}
            if name == OURS:
                peer = medians[PEER]
                row["p99 x peer's"] = _ratio(values["p99 ms"], peer["p99 ms"])
                row["/CPU s x peer's"] = _ratio(values[_PER_CPU], peer[_PER_CPU])
            rows.append(Row("server", case, name, row))
        return {name: values["goodput/s"] for name, values in medians.items()}, rows

    def _measure(self, name: str, process: ServerProcess, flags: list[str]) -> dict[str, float]:
        """One load on one server, with what the server itself says about it."""
        cpu, counters = process.cpu_seconds(), process.counters()
        model = [f"--model={self._model}"] if name == OURS else []
        report = self._load.run(process.address, [*flags, *model])
        cpu, after = process.cpu_seconds() - cpu, process.counters()
        rows, batches = (after[key] - counters[key] for key in _BATCH_COUNTERS[name])
        return _columns(report) | {
            "rows": _ratio(rows, batches),
            _PER_CPU: _ratio(report.sentences, cpu),
        }


_BATCH_COUNTERS = {
    OURS: ("nmt_step_rows_total", "nmt_step_seconds_count"),
    PEER: (SENTENCES, BATCHES),
}
"""What the mean batch is the ratio of: of our steps, of the peer's whole translations."""


def _ratio(numerator: float, denominator: float) -> float:
    return numerator / denominator if denominator else float("nan")


def _columns(report: Report) -> dict[str, float]:
    return {name: float(value) for name, value in report.columns().items()}
