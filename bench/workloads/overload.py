"""Four times the calls that a server can answer: what it still answers, and how fast it says no.

The peak is measured in turns with the overload, on the same server: callers who wait for their
answers, enough of them to fill its batches. The overload comes open loop, in large calls, since
they cost a server the most before it can know that it has no room for them. The queue is shorter
than by default, so that it is full for nearly all of the time.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from bench.load import Report
from bench.processes import LoadProcess, our_server
from bench.settings import Settings
from bench.table import Row
from bench.timing import Ratio

OURS = "this server"
FACTOR = 4
PER_CALL = 64
_CALLERS = 8
_ROUNDS = 3
_QUEUE = 1024
_LENGTH = 2
"""Of a load, in those of other workloads: what is in flight at its end counts for little then."""


def overload(settings: Settings) -> Iterator[Row]:
    """The peak, then the overload; each the median of all rounds."""
    model = settings.bundle("transformer").manifest.name
    flags = [f"--per-call={PER_CALL}", f"--model={model}"]
    peaks, loads = list[Report](), list[Report]()
    queue = f"--max-queue-sentences={_QUEUE}"
    with tempfile.TemporaryDirectory() as scratch, our_server(settings.models, queue) as server:
        load = LoadProcess(settings.corpus.sources, Path(scratch), _LENGTH * settings.seconds)
        for seed in range(min(settings.rounds, _ROUNDS)):
            seeded = [*flags, f"--seed={seed}"]
            peaks.append(load.run(server.address, [*seeded, f"--concurrency={_CALLERS}"]))
            rate = FACTOR * peaks[-1].goodput / PER_CALL
            loads.append(load.run(server.address, [*seeded, f"--rate={rate}"]))
    share = Ratio.of([one.goodput for one in loads], [one.goodput for one in peaks])
    yield Row("overload", "the peak", OURS, _accepted(peaks))
    yield Row(
        "overload",
        f"{FACTOR} x the peak, {PER_CALL} a call",
        OURS,
        _accepted(loads) | share.values("x the peak") | _refused(loads, peaks),
    )


def _accepted(reports: list[Report]) -> dict[str, float | str]:
    names = ("offered/s", "goodput/s", "p50 ms", "p99 ms", "late p99 ms")
    columns = [report.columns() for report in reports]
    return {name: median(float(each[name]) for each in columns) for name in names}


def _refused(loads: list[Report], peaks: list[Report]) -> dict[str, float | str]:
    codes = Counter[str]()
    for report in loads:
        codes.update(report.codes)
    peak = median(report.goodput for report in peaks)
    return {
        "refused p50 ms": median(report.refused_p50 for report in loads),
        "refused p99 ms": median(report.refused_p99 for report in loads),
        "full queue ms": 1e3 * _QUEUE / peak,
        "calls": ", ".join(f"{count} {code}" for code, count in codes.most_common()),
    }
