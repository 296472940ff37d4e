"""The training configuration: one TOML file, one frozen dataclass per section.

Refuses unknown, missing and mistyped keys, all named at once, before any work starts. The
`[model]` section is passed as it is to `training.model.build_model`, which checks it.
"""

import math
import tomllib
import typing
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self


class ConfigError(ValueError):
    """A configuration that can't be used; the message lists every fault."""


@dataclass(frozen=True, slots=True)
class DataConfig:
    """Where the sentence pairs are, and which of them are fit to train on."""

    data_dir: str  # relative to the working directory
    train: str  # file names in data_dir: a pair a line, in two columns `text<TAB>text`, gzip
    valid: str
    test: str
    column_languages: list[str]  # BCP 47, of the two columns
    source_language: str
    target_language: str
    licence: str  # of the pairs; this and the next are for the bundle
    attribution: str
    max_tokens: int  # of a side, with EOS; longer pairs are dropped
    max_length_ratio: float  # of the longer to the shorter side, for pairs of more than 10 tokens
    batch_tokens: int  # source and target tokens of a batch, padding included
    # A target of n tokens with EOS, fewer than these, is seen (common_tokens / n) ** 3 times an
    # epoch, rounded down: the phrases that everybody tries first are rare in a corpus. 0: all once.
    common_tokens: int = 0
    distilled: str = ""  # more pairs to train on, as `distill` makes them; a path or, without a
    # slash, a file name in data_dir; empty: none

    @property
    def source_column(self) -> int:
        return self.column_languages.index(self.source_language)

    @property
    def training_paths(self) -> list[Path]:
        """The corpus, and the distilled pairs if there are any."""
        corpus = Path(self.data_dir, self.train)
        if not self.distilled:
            return [corpus]
        is_path = "/" in self.distilled
        return [corpus, Path(self.distilled) if is_path else Path(self.data_dir, self.distilled)]


@dataclass(frozen=True, slots=True)
class VocabularyConfig:
    """The pieces, which both languages share."""

    size: int  # with special pieces and bytes
    character_coverage: float  # share of the running text in pieces; the rest is spelt in bytes


@dataclass(frozen=True, slots=True)
class AugmentConfig:
    """Probabilities of each change to a training example; 0 turns it off."""

    join: float  # several random pairs become one, so that longer inputs are seen
    max_joined: int  # pairs in one joined example
    upper_case: float  # both sides in capitals
    lower_case_source: float  # the source alone
    source_splits: float  # of each piece, to fall into the two that it was merged from
    target_splits: float


@dataclass(frozen=True, slots=True)
class OptimizerConfig:
    """Who moves the weights, and how fast."""

    name: str  # "adam", or "muon" for the matrices of the hidden layers with Adam for all else
    peak_rate: float  # of Adam
    muon_peak_rate: float
    betas: list[float]  # of Adam, two
    weight_decay: float  # of Muon; Adam has none
    warmup_steps: int  # until the rates are at their peaks, from where they fall to 0
    clip_norm: float  # of the gradient of all weights together, at most


@dataclass(frozen=True, slots=True)
class RunConfig:
    """How long a run is, and what it leaves behind on the way."""

    total_steps: int  # optimizer steps, each on one batch
    seed: int
    threads: int  # of torch; another number gives other roundings
    label_smoothing: float  # share of the target distribution that is spread over all pieces
    ema_decay: float  # of the averaged weights, which are validated and exported
    autocast: bool  # bfloat16 matrix products
    validate_every_steps: int
    validation_sentences: int  # distinct sources
    checkpoint_every_seconds: float
    log_every_steps: int


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """A whole file."""

    name: str  # of the run and, unless export is told otherwise, of its bundle
    data: DataConfig
    vocabulary: VocabularyConfig
    augment: AugmentConfig
    model: Mapping[str, Any]
    optimizer: OptimizerConfig
    run: RunConfig

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> Self:
        """Check a parsed file.

        Raises:
            ConfigError: with every fault.
        """
        faults: list[str] = []
        sections = {
            field.name: _section(field.name, field.type, table, faults)
            for field in fields(cls)
            if field.name != "name"
        }
        faults += [f"unknown section [{key}]" for key in table.keys() - sections.keys() - {"name"}]
        if not isinstance(table.get("name"), str):
            faults.append('name = "..." is missing')
        if not faults:
            faults += _out_of_range(sections)
            faults += _contradictions(sections["data"], sections["optimizer"])
        if faults:
            raise ConfigError("; ".join(faults))
        return cls(name=table["name"], **sections)

    def to_dict(self) -> dict[str, Any]:
        """The inverse of `from_dict`, made of plain values."""
        return asdict(self) | {"model": dict(self.model)}


def load_config(path: Path) -> TrainingConfig:
    """Read a TOML file.

    Raises:
        ConfigError: with every fault, each naming its key.
    """
    try:
        return TrainingConfig.from_dict(tomllib.loads(path.read_text(encoding="utf-8")))
    except (ConfigError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from error


def _section(name: str, kind: Any, table: Mapping[str, Any], faults: list[str]) -> Any:
    given = table.get(name)
    if not isinstance(given, Mapping):
        faults.append(f"section [{name}] is missing")
        return None
    if name == "model":
        return dict(given)
    expected = typing.get_type_hints(kind)
    faults += [f"unknown key {name}.{key}" for key in given.keys() - expected.keys()]
    required = {field.name for field in fields(kind) if field.default is MISSING}
    faults += [f"key {name}.{key} is missing" for key in required - given.keys()]
    for key in expected.keys() & given.keys():
        if not _fits(given[key], expected[key]):
            faults.append(f"{name}.{key} = {given[key]!r} is not {_EXPECTED[expected[key]]}")
    return None if faults else kind(**given)


_EXPECTED: Mapping[Any, str] = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    list[str]: "a list of strings",
    list[float]: "a list of numbers",
}


def _fits(value: Any, kind: Any) -> bool:
    if typing.get_origin(kind) is list:
        (of,) = typing.get_args(kind)
        return isinstance(value, list) and all(_fits(item, of) for item in value)
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, int | float if kind is float else kind)


# Of values that could not be trained with; inclusive.
_RANGES: Mapping[str, tuple[float, float]] = {
    "data.max_tokens": (2, math.inf),
    "data.batch_tokens": (1, math.inf),
    "data.common_tokens": (0, math.inf),
    "vocabulary.size": (1, math.inf),
    "vocabulary.character_coverage": (0, 1),
    "augment.join": (0, 1),
    "augment.max_joined": (2, math.inf),
    "augment.upper_case": (0, 1),
    "augment.lower_case_source": (0, 1),
    "augment.source_splits": (0, 1),
    "augment.target_splits": (0, 1),
    "run.total_steps": (1, math.inf),
    "run.threads": (1, math.inf),
    "run.label_smoothing": (0, 1),
    "run.ema_decay": (0, 1),
    "run.validate_every_steps": (1, math.inf),
    "run.validation_sentences": (1, math.inf),
    "run.log_every_steps": (1, math.inf),
}


def _out_of_range(sections: Mapping[str, Any]) -> list[str]:
    faults = []
    for path, (low, high) in _RANGES.items():
        section, key = path.split(".")
        value = getattr(sections[section], key)
        if not low <= value <= high:
            limit = f"at least {low:g}" if high == math.inf else f"from {low:g} to {high:g}"
            faults.append(f"{path} = {value} must be {limit}")
    return faults


def _contradictions(data: DataConfig, optimizer: OptimizerConfig) -> list[str]:
    faults = []
    if sorted((data.source_language, data.target_language)) != sorted(data.column_languages):
        faults.append(
            f"data.source_language {data.source_language!r} and data.target_language "
            f"{data.target_language!r} must be the two of "
            f"data.column_languages {data.column_languages}"
        )
    if optimizer.name not in ("adam", "muon"):
        faults.append(f'optimizer.name = {optimizer.name!r} must be "adam" or "muon"')
    if len(optimizer.betas) != 2:
        faults.append(f"optimizer.betas = {optimizer.betas} must be two numbers")
    return faults
