"""A whole test set at once: throughput, quality, and whether neighbours change a translation.

Each engine runs as it does best, which for both is to choose from lists of likely words, and once
more over the whole vocabulary. Like is compared with like.
"""

import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
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
from service.decoding import DecodingOptions
from service.engine import Engine

OURS, PEER = "this engine", "ctranslate2"
_WITH_ATTENTION = ", attention"
_WHOLE = ", whole vocabulary"
_BATCH_SIZES = (32, 64, 128)
"""That the peer may choose from; the fastest is taken."""
_OTHER_BATCH_SIZE = 24


def corpus(settings: Settings) -> Iterator[Row]:
    """Greedy and beam 4, with and without attention and lists, against ctranslate2."""
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
    whole = replace(plain, shortlist=False)
    best, default = peer.best(), peer.default()

    def peer_system(
        options: DecodingOptions, size: int, use_map: bool = peer.has_map
    ) -> Ctranslate2System:
        return Ctranslate2System(best, peer.pieces, options, size, use_map=use_map)

    size = _fastest_batch_size(lambda size: peer_system(plain, size), sources)
    systems: dict[str, System] = {
        OURS: EngineSystem(engine, plain),
        PEER: peer_system(plain, size),
        OURS + _WITH_ATTENTION: EngineSystem(engine, attention),
        PEER + _WITH_ATTENTION: peer_system(attention, size),
        OURS + _WHOLE: EngineSystem(engine, whole),
        PEER + _WHOLE: peer_system(plain, size, use_map=False),
        f"{PEER}, its default": Ctranslate2System(default, peer.pieces, plain, size),
    }
    other = peer_system(plain, _OTHER_BATCH_SIZE)
    return systems, {OURS: systems[OURS], PEER: other}


def _fastest_batch_size(make: Callable[[int], System], sources: Sequence[Ids]) -> int:
    """In the better of two runs each."""
    seconds = alternate({str(size): job(make(size), sources) for size in _BATCH_SIZES}, 2)
    return int(min(seconds, key=lambda name: min(seconds[name])))


def _ratio(name: str, measured: Mapping[str, Measured]) -> dict[str, float | str]:
    values: dict[str, float | str] = {}
    one = measured[name]
    if name.startswith(OURS):
        peer = PEER if name.endswith(_WITH_ATTENTION) else PEER + name.removeprefix(OURS)
        values |= one.times_as_fast(measured[peer]).values("x ctranslate2")
        values["x its whole vocabulary"] = one.times_as_fast(measured[PEER + _WHOLE]).median
    if name.endswith(_WITH_ATTENTION):
        without = measured[name.removesuffix(_WITH_ATTENTION)]
        values["x without attention"] = one.times_as_fast(without).median
    return values


def _same(system: System, sources: Sequence[Ids], expected: Sequence[Ids]) -> str:
    """The share of sentences that are translated alike in a shuffled corpus."""
    order = random.Random(1).sample(range(len(sources)), len(sources))
    found = translate(system, [sources[index] for index in order])
    same = sum(expected[index] == ids for index, ids in zip(order, found, strict=True))
    return f"{same / len(sources):.2%}"
