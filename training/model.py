"""What every translator is: a network with a training forward, an `encode` and a `step`.

Owns the contract between the networks and everything that drives them (training, validation by
search, export): shapes, the names of the tensors that live between steps, the tied embedding.
Refuses to know how a network works, and what the ids mean: padding is told by lengths alone.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any, ClassVar, Literal, Self, get_args, get_origin

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@dataclass(frozen=True)
class TensorSpec:
    """A tensor that is kept between steps.

    Each axis is a fixed size or one of "sentence", "sentence * beam", "source" and "target".
    """

    name: str
    axes: tuple[str | int, ...]


@dataclass(frozen=True, eq=False)
class StepOutput:
    """What one decoding step gives for each of its `sentence * beam` rows."""

    logits: Tensor
    """(rows, vocabulary)"""
    attention: Tensor
    """(rows, heads, source_len); each row of it sums to 1 over the valid source positions."""
    state: tuple[Tensor, ...]
    """In the order of `state_specs`."""


@dataclass(frozen=True)
class TranslatorConfig(ABC):
    """What a network is built of: integers are at least 1, fractions are dropout rates in [0, 1),
    strings are one of their field's.

    Raises ValueError that names every field outside its range.
    """

    architecture: ClassVar[str]
    vocabulary_size: int

    def __post_init__(self) -> None:
        values = asdict(self)
        faults = [
            f"{field.name} is {values[field.name]!r}, not {_expected(field.type)}"
            for field in fields(self)
            if not _is_valid(field.type, values[field.name])
        ]
        if faults:
            raise ValueError(f"{self.architecture}: {'; '.join(faults)}")

    @classmethod
    def from_fields(cls, values: Mapping[str, Any]) -> Self:
        """A configuration from its fields; ValueError names the unknown and the missing ones."""
        known = {field.name for field in fields(cls)}
        required = {field.name for field in fields(cls) if field.default is MISSING}
        faults = [f"unknown {name}" for name in sorted(set(values) - known)]
        faults += [f"missing {name}" for name in sorted(required - set(values))]
        if faults:
            raise ValueError(f"{cls.architecture}: {'; '.join(faults)}")
        return cls(**values)

    @abstractmethod
    def build(self) -> "Translator":
        """A network of these sizes with fresh weights."""


_EXPECTED: dict[Any, str] = {
    int: "an integer of at least 1",
    int | None: "an integer of at least 1, or none",
    float: "a number in [0, 1)",
    bool: "true or false",
}


def _expected(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return f"one of {', '.join(get_args(kind))}"
    return _EXPECTED[kind]


def _is_valid(kind: Any, value: object) -> bool:
    if get_origin(kind) is Literal:
        return value in get_args(kind)
    if kind == int | None:
        return value is None or _is_valid(int, value)
    if kind is bool or isinstance(value, bool):
        return kind is bool and isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and value >= 1
    return isinstance(value, int | float) and 0 <= value < 1


class Embedding(nn.Module):
    """A table of rows that start with norm 1 and are scaled by sqrt(size) when they are looked up.

    So they reach unit variance; an imported table may do without the scale.
    """

    def __init__(self, vocabulary_size: int, size: int, *, scaled: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocabulary_size, size).normal_(std=size**-0.5))
        self.scale = math.sqrt(size) if scaled else 1.0

    def forward(self, ids: Tensor) -> Tensor:
        """ids (...) -> scaled embeddings (..., size)."""
        return F.embedding(ids, self.weight) * self.scale


class TiedEmbedding(Embedding):
    """One table for source, target and output (Press and Wolf 2017; Vaswani et al. 2017, 3.4).

    As output layer it isn't scaled, so that logits start near unit variance; there it may have a
    bias, which is None otherwise.
    """

    def __init__(
        self, vocabulary_size: int, size: int, *, scaled: bool = True, bias: bool = False
    ) -> None:
        super().__init__(vocabulary_size, size, scaled=scaled)
        self.bias = nn.Parameter(torch.zeros(vocabulary_size)) if bias else None

    def logits(self, features: Tensor) -> Tensor:
        """features (..., size) -> logits (..., vocabulary_size)."""
        return F.linear(features, self.weight, self.bias)


class Translator(nn.Module, ABC):
    """A network that scores the next target token given a source sentence and a target prefix.

    *Memory* stays constant while a sentence decodes and is kept once per sentence; *state* changes
    with every step and is kept once per row, where the `beam` rows of a sentence are neighbours.
    Rows never influence each other, and padding never influences anything.
    """

    config: TranslatorConfig
    embedding: TiedEmbedding

    @property
    def source_embedding(self) -> Embedding:
        """What source ids are looked up in: another table where they aren't the target's."""
        return self.embedding

    def config_dict(self) -> dict[str, Any]:
        """What `build_model` needs to build this network again (without its weights)."""
        return {"architecture": self.config.architecture, **asdict(self.config)}

    @property
    @abstractmethod
    def memory_specs(self) -> tuple[TensorSpec, ...]:
        """Names and axes of the memory tensors, in order."""

    @property
    @abstractmethod
    def state_specs(self) -> tuple[TensorSpec, ...]:
        """Names and axes of the state tensors, in order."""

    @abstractmethod
    def decoder_features(
        self, source_ids: Tensor, source_lengths: Tensor, target_ids: Tensor
    ) -> Tensor:
        """What `output_layer` turns into logits: (batch, target_len, size); arguments as `forward`.

        Apart from `forward`, so that a loss can skip the large output product at padding.
        """

    def output_layer(self, features: Tensor) -> Tensor:
        """features (..., size) -> logits (..., vocabulary)."""
        return self.embedding.logits(features)

    def forward(self, source_ids: Tensor, source_lengths: Tensor, target_ids: Tensor) -> Tensor:
        """Logits (batch, target_len, vocabulary) of the token after each target prefix.

        source_ids (batch, source_len) and source_lengths (batch,); target_ids (batch, target_len)
        begin with the decoder's start token. Padding is at the end of a row.
        """
        return self.output_layer(self.decoder_features(source_ids, source_lengths, target_ids))

    @abstractmethod
    def encode(
        self, source_ids: Tensor, source_lengths: Tensor
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Memory and initial state, one row per sentence, in the order of their specs.

        source_ids (sentence, source_len) and source_lengths (sentence,). A `target` axis of the
        state starts at size 0. For W beams, repeat each state row W times.
        """

    @abstractmethod
    def step(
        self,
        tokens: Tensor,
        positions: Tensor,
        source_lengths: Tensor,
        memory: tuple[Tensor, ...],
        state: tuple[Tensor, ...],
    ) -> StepOutput:
        """One token further in every row.

        tokens (sentence, beam): the last token of each row, at first the start token. positions
        (sentence * beam,): how many tokens came before it. source_lengths (sentence,).
        The state passed in is left as it was.
        """


def build_model(config: Mapping[str, Any]) -> Translator:
    """A translator with fresh weights from what `Translator.config_dict` gives.

    `config["architecture"]` chooses the network, the other entries are fields of its configuration.
    Raises ValueError for an unknown architecture, and as `TranslatorConfig` does.
    """
    # Here and not above, because both modules build on this one.
    from training.bahdanau import BahdanauConfig
    from training.transformer import TransformerConfig

    configs: dict[str, type[TranslatorConfig]] = {
        cls.architecture: cls for cls in (TransformerConfig, BahdanauConfig)
    }
    values = dict(config)
    architecture = values.pop("architecture", None)
    if architecture not in configs:
        raise ValueError(f"architecture is {architecture!r}; choose one of {', '.join(configs)}")
    return configs[architecture].from_fields(values).build()
