"""What a figure of the chapter is, and what it may draw on.

A module of this folder is a part of docs/attention.md. Its figures are the functions in `FIGURES`,

    def average_pooling(run: Run) -> Figure

in the order of the page; the function's name is the figure's. Nothing is implemented here that is
trained or served: a figure runs the code of `training`, `export` and `service`, and draws.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from export.rebuild import network_of
from service.bundle import Bundle, read_bundle
from service.text import Tokenizer
from training.plots import Picture
from training.transformer import Transformer

ROOT = Path(__file__).parent.parent.parent
Number: TypeAlias = float | Sequence[float] | Sequence[Sequence[float]]


@dataclass(frozen=True)
class Figure:
    """A picture, and the numbers that it shows."""

    picture: Picture
    caption: str
    """One sentence, drawn below the picture; the page has it as the picture's text."""
    numbers: Mapping[str, Number]
    """The same, within a hundredth, in a quick run."""
    measured: Mapping[str, Number] = field(default_factory=dict)
    """Times, and what comes of training for longer than a quick run does."""


@dataclass(frozen=True)
class Served:
    """The Transformer that is served, as torch has it."""

    bundle: Bundle

    @cached_property
    def network(self) -> Transformer:
        """Of the bundle's own weights, in evaluation mode."""
        network = network_of(self.bundle)
        assert isinstance(network, Transformer)
        return network

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """Of source and target."""
        return Tokenizer.from_bytes(self.bundle.tokenizer_bytes("source"))


@dataclass(frozen=True)
class Run:
    """One run of `python -m docs.make_figures`."""

    quick: bool = False
    """As short as tests need it."""
    models: Path = ROOT / "models"
    data_dir: Path = ROOT.parent / "shared" / "data" / "tatoeba-eng-fra"
    """May be missing in a clone."""

    @cached_property
    def served(self) -> Served:
        return Served(read_bundle(self.models / "transformer-en-fr"))


Draw: TypeAlias = Callable[[Run], Figure]
