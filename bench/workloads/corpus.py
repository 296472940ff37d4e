"""A whole test set at once: throughput, quality, and whether neighbours change a translation."""

import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from bench.settings import Settings, comparable
from bench.side_by_side import Measured, encode, job, measure
from bench.systems import (
    Ctranslate2System,
    EngineSystem,
    Ids,
    Peer,
    System,
    engine_of,
    translate,
)
from bench.table import Row
from bench.timing import alternate
from service.engine import Engine

OURS, PEER = "this engine", "ctranslate2"
_WITH_ATTENTION = ", attention"
_BATCH_SIZES = (32, 64, 128)
"""That the peer may choose from; the fastest is taken."""
_OTHER_BATCH_SIZE = 24


def corpus(settings: Settings) -> Iterator[Row]:
    """Greedy and beam 4, with and without attention, against ctranslate2's best and default."""
    bundle = settings.bundle("transformer")
    sources = encode(bundle, settings.corpus.sources)
    with tempfile.TemporaryDirectory() as scratch, closing(engine_of(bundle)) as engine:
        peer = Peer.write(bundle, Path(scratch, "peer"))
        for beam_size in (1, 4):
            systems, reordered = _systems(engine, peer, beam_size, sources)
            measured = measure(systems, sources, settings.rounds)
            for name, one in measured.items():
                values = one.speed() | one.quality(bundle, settings.corpus.references)
                if name in reordered:
                    values["same in other order"] = _same(reordered[name], sources, one.targets)
                yield Row("corpus", f"beam {beam_size}", name, values | _ratio(name, measured))


def _systems(
    engine: Engine, peer: Peer, beam_size: int, sources: Sequence[Ids]
) -> tuple[dict[str, System], dict[str, System]]:
    """What is timed, and what translates in another order: other batches, where one has them."""
    plain, attention = comparable(beam_size), comparable(beam_size, attention=True)
    best, default = peer.best(), peer.default()
    size = _fastest_batch_size(
        lambda size: Ctranslate2System(best, peer.pieces, plain, size), sources
    )
    systems: dict[str, System] = {
        OURS: EngineSystem(engine, plain),
        PEER: Ctranslate2System(best, peer.pieces, plain, size),
        OURS + _WITH_ATTENTION: EngineSystem(engine, attention),
        PEER + _WITH_ATTENTION: Ctranslate2System(best, peer.pieces, attention, size),
        f"{PEER}, its default": Ctranslate2System(default, peer.pieces, plain, size),
    }
    other = Ctranslate2System(best, peer.pieces, plain, _OTHER_BATCH_SIZE)
    return systems, {OURS: systems[OURS], PEER: other}


def _fastest_batch_size(make: Callable[[int], System], sources: Sequence[Ids]) -> int:
    """In the better of two runs each."""
    seconds = alternate({str(size): job(make(size), sources) for size in _BATCH_SIZES}, 2)
    return int(min(seconds, key=lambda name: min(seconds[name])))


def _ratio(name: str, measured: Mapping[str, Measured]) -> dict[str, float | str]:
    if name == OURS:
        return measured[OURS].times_as_fast(measured[PEER], "x ctranslate2")
    if name.endswith(_WITH_ATTENTION):
        without = measured[name.removesuffix(_WITH_ATTENTION)]
        return measured[name].times_as_fast(without, "x without attention")
    return {}


def _same(system: System, sources: Sequence[Ids], expected: Sequence[Ids]) -> str:
    """The share of sentences that are translated alike in a shuffled corpus."""
    order = random.Random(1).sample(range(len(sources)), len(sources))
    found = translate(system, [sources[index] for index in order])
    same = sum(expected[index] == ids for index, ids in zip(order, found, strict=True))
    return f"{same / len(sources):.2%}"
