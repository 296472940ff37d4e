"""The recurrent model against what it was trained in."""

from collections.abc import Iterator
from contextlib import closing

import torch

from bench.settings import Settings, comparable
from bench.side_by_side import encode, measure
from bench.systems import EngineSystem, System, TorchSystem, engine_of
from bench.table import Row
from bench.workloads.corpus import OURS
from export.rebuild import network_of
from service.engine import usable_cores

TORCH = "PyTorch float32"


def bahdanau(settings: Settings) -> Iterator[Row]:
    """The whole test set, greedy, through the engine and through PyTorch on as many cores."""
    bundle = settings.bundle("bahdanau")
    sources = encode(bundle, settings.corpus.sources)
    torch.set_num_threads(usable_cores())
    with closing(engine_of(bundle)) as engine:
        options = comparable(1)
        systems: dict[str, System] = {
            OURS: EngineSystem(engine, options),
            TORCH: TorchSystem(network_of(bundle), options),
        }
        measured = measure(systems, sources, settings.rounds)
    for name, one in measured.items():
        values = one.speed() | one.quality(bundle, settings.corpus.references)
        if name == OURS:
            values |= one.times_as_fast(measured[TORCH]).values("x PyTorch")
        yield Row("bahdanau", "beam 1", name, values)
