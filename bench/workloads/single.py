"""One sentence at a time, the next when the last has come: what an idle service answers in."""

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median

from bench.settings import Settings, comparable
from bench.side_by_side import encode
from bench.systems import Ctranslate2System, EngineSystem, Ids, Peer, System, engine_of
from bench.table import Row
from bench.timing import Ratio, percentile
from bench.workloads.corpus import OURS, PEER

_MAX_SENTENCES = 500
_WHOLE = f"{PEER}, whole vocabulary"


def single(settings: Settings) -> Iterator[Row]:
    """Percentiles of the time per sentence, greedy and beam 4; each the median of all rounds."""
    bundle = settings.bundle("transformer")
    sources = encode(bundle, settings.corpus.sources[:_MAX_SENTENCES])
    with tempfile.TemporaryDirectory() as scratch, closing(engine_of(bundle)) as engine:
        peer = Peer.write(bundle, Path(scratch, "peer"))
        best, default = peer.best(), peer.default()
        for beam_size in (1, 4):
            options = comparable(beam_size)
            systems: dict[str, System] = {
                OURS: EngineSystem(engine, options),
                PEER: Ctranslate2System(best, peer.pieces, options, use_map=peer.has_map),
                _WHOLE: Ctranslate2System(best, peer.pieces, options),
                f"{PEER}, its default": Ctranslate2System(default, peer.pieces, options),
            }
            yield from _rows(systems, sources, settings.rounds, f"beam {beam_size}")


def _rows(
    systems: dict[str, System], sources: Sequence[Ids], rounds: int, case: str
) -> Iterator[Row]:
    seconds: dict[str, list[list[float]]] = {name: [] for name in systems}
    for number in range(rounds + 1):
        for name, system in systems.items():
            measured = _one_by_one(system, sources)
            if number:  # the first round warms up
                seconds[name].append(measured)
    p50 = {name: [percentile(one, 50) for one in each] for name, each in seconds.items()}
    for name, each in seconds.items():
        values: dict[str, float | str] = {
            "p50 ms": 1e3 * median(p50[name]),
            "p99 ms": 1e3 * median(percentile(one, 99) for one in each),
        }
        if name == OURS:
            values |= Ratio.of(p50[PEER], p50[OURS]).values("x ctranslate2 at p50")
            values["x its whole vocabulary"] = Ratio.of(p50[_WHOLE], p50[OURS]).median
        yield Row("single sentence", case, name, values)


def _one_by_one(system: System, sources: Sequence[Ids]) -> list[float]:
    seconds = []
    for source in sources:
        prepared = system.prepare([source])
        started = time.perf_counter()
        system.run(prepared)
        seconds.append(time.perf_counter() - started)
    return seconds
