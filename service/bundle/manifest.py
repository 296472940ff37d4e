"""The manifest: all that serving needs to know about a model, and where the model came from.

Owns the meaning of `bundle.json`. The engine knows no architecture: it allocates and moves tensors
by the names and axes written here. Sizes are in tokens; a limit is inclusive.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from service.bundle.lexicon import SHORTLIST_NAME
from service.bundle.records import Record
from service.decoding import DecodingOptions
from service.errors import InvalidArgument

OLDEST_FORMAT_VERSION = 1
FORMAT_VERSION = 2
"""What is written; every version from the oldest on is read.

    1    int8 and fp32 graphs
    2    fp16 graphs, whose memory and state are float16; `source_prefix`
"""
PRECISIONS = ("fp32", "int8", "fp16")
GRAPHS = ("encoder", "step")
DTYPES = ("float32", "float16", "int64", "int32", "int8")
MAX_FILE_BYTES = 2**31  # what an ONNX file can hold

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TENSOR_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,127}")
_LANGUAGE = re.compile(r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*")
_SHA256 = re.compile(r"[0-9a-f]{64}")
# Other inputs and outputs of the graphs; `next_` is the prefix of the state that a step returns.
_RESERVED = {
    *("source_ids", "source_lengths", "tokens", "positions", "num_candidates"),
    *("shortlist_ids", "whole_vocabulary"),
    *("candidate_log_probs", "candidate_ids", "attention", "log_probs"),
}


@dataclass(frozen=True)
class TensorSpec(Record):
    """A tensor that lives as long as its sentence: memory (read only) or state (new at each step).

    An axis is a fixed size or a name: `sentence` (first axis of memory), `sentence * beam` (first
    axis of state, row `i` belongs to sentence `i // beams`), `source` (positions, padded), `target`
    (a cache that is written in place, one position a step; its size is the capacity), `shortlist`
    (the words that the sentence chooses from, padded). Padding has the value `padding`. What is
    float32 here is float16 in fp16 graphs.
    """

    name: str
    axes: tuple[str | int, ...]
    dtype: str = "float32"
    padding: float = 0.0

    def faults(self) -> Iterator[str]:
        if not _TENSOR_NAME.fullmatch(self.name):
            yield f"name is {self.name!r}, must be letters, digits, '_' and '.'"
        if self.name in _RESERVED or self.name.startswith("next_"):
            yield f"name is {self.name!r}, which the graphs use for something else"
        if self.dtype not in DTYPES:
            yield f"dtype is {self.dtype!r}, must be one of {_listed(DTYPES)}"

    def halved(self) -> "TensorSpec":
        """The tensor as fp16 graphs have it."""
        return replace(self, dtype="float16") if self.dtype == "float32" else self

    def axis_faults(self, first: str, others: tuple[str, ...]) -> Iterator[str]:
        """Where the axes aren't `first`, then sizes and some of `others`, each at most once."""
        if not self.axes or self.axes[0] != first:
            yield f"axes of {self.name!r} are {list(self.axes)}, the first must be {first!r}"
        for index, axis in enumerate(self.axes[1:], 1):
            known = axis in others if isinstance(axis, str) else axis > 0
            if not known or (isinstance(axis, str) and axis in self.axes[:index]):
                allowed = f"must be one of {_listed(others)}, named once, or a positive size"
                yield f"axis {index} of {self.name!r} is {axis!r}, {allowed}"


@dataclass(frozen=True)
class Attention(Record):
    """The attention of a step, `(rows, num_layers * num_heads, source)`, layers outermost.

    `layer` is the one that clients get: the one that aligns best, averaged over its heads.
    """

    layer: int
    num_layers: int
    num_heads: int

    def faults(self) -> Iterator[str]:
        yield from _below(self, 1, "num_layers", "num_heads")
        if not 0 <= self.layer < self.num_layers:
            yield f"layer is {self.layer}, must be from 0 to num_layers - 1, {self.num_layers - 1}"


@dataclass(frozen=True)
class Limits(Record):
    """What the graphs can take, and what the model takes well: all counts include EOS.

    preferred_source_tokens: of longer sources the translation is worse than that of their parts;
        0 is no such length.
    """

    max_source_tokens: int
    max_target_tokens: int
    preferred_source_tokens: int = 0

    @property
    def split_above(self) -> int:
        """The longest source that is better not split."""
        return self.preferred_source_tokens or self.max_source_tokens

    def faults(self) -> Iterator[str]:
        yield from _below(self, 1, "max_source_tokens", "max_target_tokens")
        yield from _below(self, 0, "preferred_source_tokens")
        if self.preferred_source_tokens > max(0, self.max_source_tokens):
            yield (
                f"preferred_source_tokens is {self.preferred_source_tokens}, max_source_tokens is "
                f"{self.max_source_tokens}"
            )


@dataclass(frozen=True)
class SearchDefaults(Record):
    """The search of a request that asks for nothing else; fields of `DecodingOptions`."""

    beam_size: int = 1
    length_penalty: float = 1.0
    max_length_ratio: float = 3.0
    max_length: int = 256

    def faults(self) -> Iterator[str]:
        for key, value in vars(self).items():
            try:
                DecodingOptions(**{key: value})
            except InvalidArgument as error:
                yield str(error)


@dataclass(frozen=True)
class SpecialIds(Record):
    """Ids that stand for no text. Decoding starts with `decoder_start` and ends with `eos`."""

    pad: int
    eos: int
    decoder_start: int
    unk: int

    def faults(self) -> Iterator[str]:
        return _below(self, 0, "pad", "eos", "decoder_start", "unk")


@dataclass(frozen=True)
class FileRecord(Record):
    """What a file must be: `sha256` in lower-case hexadecimal, `size` in bytes."""

    sha256: str
    size: int

    def faults(self) -> Iterator[str]:
        if not _SHA256.fullmatch(self.sha256):
            yield f"sha256 is {self.sha256!r}, must be 64 lower-case hexadecimal digits"
        if not 0 < self.size <= MAX_FILE_BYTES:
            yield f"size is {self.size}, must be from 1 to {MAX_FILE_BYTES}"


@dataclass(frozen=True)
class Manifest(Record):
    """Everything about a model but its weights.

    `name` is what clients ask for; `architecture` is information only; languages are BCP 47 tags;
    `source_prefix` are ids before those of every source, as one that names the target language;
    `shortlist` is more memory, of int8 graphs that can choose from a sentence's own words;
    `files` is filled in by `write_bundle`; `provenance` is for people: data, licence, attribution,
    configuration, scores with their sacreBLEU signature, report of the verification.
    """

    name: str
    version: str
    architecture: str
    source_language: str
    target_language: str
    vocabulary_size: int
    special_ids: SpecialIds
    limits: Limits
    memory: tuple[TensorSpec, ...]
    state: tuple[TensorSpec, ...]
    attention: Attention
    precisions: tuple[str, ...]
    source_prefix: tuple[int, ...] = ()
    shortlist: tuple[TensorSpec, ...] = ()
    search: SearchDefaults = SearchDefaults()
    files: Mapping[str, FileRecord] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    format_version: int = FORMAT_VERSION

    @property
    def languages(self) -> tuple[str, str]:
        """Source and target, as BCP 47 tags."""
        return self.source_language, self.target_language

    def in_precision(self, precision: str) -> "Manifest":
        """The manifest with memory and state as the graphs of a precision have them."""
        if precision != "fp16":
            return self
        memory, state = (tuple(s.halved() for s in specs) for specs in (self.memory, self.state))
        return replace(self, memory=memory, state=state)

    @property
    def file_names(self) -> frozenset[str]:
        """The relative paths that a bundle of these precisions consists of; none leaves it."""
        precisions = [p for p in PRECISIONS if p in self.precisions]
        graphs = (f"{precision}/{graph}.onnx" for precision in precisions for graph in GRAPHS)
        return frozenset(("source.model", "target.model", SHORTLIST_NAME, *graphs))

    def faults(self) -> Iterator[str]:
        return chain(
            self._naming_faults(), self._size_faults(), self._tensor_faults(), self._file_faults()
        )

    def _naming_faults(self) -> Iterator[str]:
        for key in ("name", "version", "architecture"):
            if not _NAME.fullmatch(getattr(self, key)):
                yield f"{key} is {getattr(self, key)!r}, must be at most 64 letters, digits, '._-'"
        for key in ("source_language", "target_language"):
            if not _LANGUAGE.fullmatch(getattr(self, key)):
                yield f"{key} is {getattr(self, key)!r}, must be a BCP 47 tag such as 'en'"

    def _size_faults(self) -> Iterator[str]:
        yield from _below(self, 1, "vocabulary_size")
        for key, id in vars(self.special_ids).items():
            if id >= self.vocabulary_size:
                yield f"special_ids.{key} is {id}, vocabulary_size is {self.vocabulary_size}"
        if min(self.source_prefix, default=0) < 0:
            yield f"source_prefix is {list(self.source_prefix)}, must be ids of at least 0"
        # A prefix, a piece and EOS are the shortest source.
        if len(self.source_prefix) + 2 > self.limits.max_source_tokens and self.source_prefix:
            most = self.limits.max_source_tokens - 2
            yield f"source_prefix has {len(self.source_prefix)} ids, at most {most} leave room"
        longest = self.limits.max_target_tokens
        if self.search.max_length > longest:
            yield f"search.max_length is {self.search.max_length}, the model's limit is {longest}"

    def _tensor_faults(self) -> Iterator[str]:
        for spec in self.memory:
            yield from spec.axis_faults("sentence", ("source",))
        for spec in self.shortlist:
            yield from spec.axis_faults("sentence", ("shortlist",))
        for spec in self.state:
            yield from spec.axis_faults("sentence * beam", ("source", "target"))
        names = [spec.name for spec in self.memory + self.shortlist + self.state]
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield f"memory and state have {name!r} more than once"

    def _file_faults(self) -> Iterator[str]:
        if not self.precisions or len(set(self.precisions)) < len(self.precisions):
            yield f"precisions are {list(self.precisions)}, must be one or more, each once"
        for precision in self.precisions:
            if precision not in PRECISIONS:
                yield f"precisions have {precision!r}, must be among {_listed(PRECISIONS)}"
        optional = {"target.model"} if self.shortlist else {"target.model", SHORTLIST_NAME}
        for name in sorted(self.file_names - self.files.keys() - optional):
            yield f"files has no {name!r}"
        if SHORTLIST_NAME in self.files and not self.shortlist:
            yield f"files has {SHORTLIST_NAME!r}, but there is no shortlist"
        for name in sorted(self.files.keys() - self.file_names):
            yield f"files has {name!r}, which is no part of a bundle of these precisions"


def _below(record: Record, least: int, *keys: str) -> Iterator[str]:
    for key in keys:
        value = getattr(record, key)
        if not (math.isfinite(value) and value >= least):
            yield f"{key} is {value}, must be at least {least}"


def _listed(options: tuple[str, ...]) -> str:
    return ", ".join(options)
