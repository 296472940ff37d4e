"""Four times the calls that a server can answer: what it still answers, and how fast it says no.

The peak is measured in turns with the overload, on the same server: callers who wait for their
answers, enough of them to fill its batches. The overload comes open loop, in large calls, since
they cost a server the most before it can know that it has no room for them. The queue is shorter
than by default, so that it is full for nearly all of the time.

Server and generator share the cores, and refusals cost the generator too: the goodput is also
compared per second of processor time that the server took, and that the generator left it.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.load import Report
from bench.processes import LoadProcess, ServerProcess, our_server
from bench.settings import Settings
from bench.table import Row
from bench.timing import Ratio
from service.engine.cores import usable_cores

OURS = "this server"
FACTOR = 4
PER_CALL = 64
_CALLERS = 8
_ROUNDS = 3
_QUEUE = 1024
_LENGTH = 2
"""Of a load, in those of other workloads: what is in flight at its end counts for little then."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A load, and the processor time that the server took from its beginning to its last answer."""

    report: Report
    server_seconds: float

    @classmethod
    def on(cls, server: ServerProcess, load: LoadProcess, flags: Sequence[str]) -> "Measured":
        before = server.cpu_seconds()
        report = load.run(server.address, flags)
        return cls(report, server.cpu_seconds() - before)

    @property
    def per_cpu_second(self) -> float:
        """Sentences that the server answered in a second of its processor time."""
        return self.report.sentences / self.server_seconds

    @property
    def per_second_left(self) -> float:
        """Its goodput by the processor time that the generator left it, of all cores."""
        report = self.report
        left = usable_cores() * report.seconds - report.cpu_seconds
        return report.goodput * report.seconds / left

    def columns(self) -> dict[str, float]:
        names = ("offered/s", "goodput/s", "p50 ms", "p99 ms", "late p99 ms")
        columns, report = self.report.columns(), self.report
        return {name: float(columns[name]) for name in names} | {
            "sentences/CPU s": self.per_cpu_second,
            "generator CPU %": 1e2 * report.cpu_seconds / report.seconds,
        }


def overload(settings: Settings) -> Iterator[Row]:
    """The peak, then the overload; each the median of all rounds."""
    model = settings.bundle("transformer").manifest.name
    flags = [f"--per-call={PER_CALL}", f"--model={model}"]
    peaks, loads = list[Measured](), list[Measured]()
    queue = f"--max-queue-sentences={_QUEUE}"
    with tempfile.TemporaryDirectory() as scratch, our_server(settings.models, queue) as server:
        load = LoadProcess(settings.corpus.sources, Path(scratch), _LENGTH * settings.seconds)
        for seed in range(min(settings.rounds, _ROUNDS)):
            seeded = [*flags, f"--seed={seed}"]
            peaks.append(Measured.on(server, load, [*seeded, f"--concurrency={_CALLERS}"]))
            rate = FACTOR * peaks[-1].report.goodput / PER_CALL
            loads.append(Measured.on(server, load, [*seeded, f"--rate={rate}"]))
    yield Row("overload", "the peak", OURS, _medians(peaks))
    yield Row(
        "overload",
        f"{FACTOR} x the peak, {PER_CALL} a call",
        OURS,
        _medians(loads) | _shares(loads, peaks) | _refused(loads, peaks),
    )


def _medians(measured: Sequence[Measured]) -> dict[str, float | str]:
    columns = [each.columns() for each in measured]
    return {name: median(each[name] for each in columns) for name in columns[0]}


def _shares(loads: Sequence[Measured], peaks: Sequence[Measured]) -> dict[str, float | str]:
    """The overload over the peak, round by round: as it is, and with the generator set aside."""
    goodput = Ratio.of([one.report.goodput for one in loads], [one.report.goodput for one in peaks])
    left = Ratio.of([one.per_second_left for one in loads], [one.per_second_left for one in peaks])
    own = Ratio.of([one.per_cpu_second for one in loads], [one.per_cpu_second for one in peaks])
    return goodput.values("x the peak") | {
        "x of what was left": left.median,
        "/CPU s x the peak": own.median,
    }


def _refused(loads: Sequence[Measured], peaks: Sequence[Measured]) -> dict[str, float | str]:
    codes = Counter[str]()
    for load in loads:
        codes.update(load.report.codes)
    peak = median(each.report.goodput for each in peaks)
    return {
        "refused p50 ms": median(each.report.refused_p50 for each in loads),
        "refused p99 ms": median(each.report.refused_p99 for each in loads),
        "full queue ms": 1e3 * _QUEUE / peak,
        "calls": ", ".join(f"{count} {code}" for code, count in codes.most_common()),
    }
