"""The training configuration: one TOML file, one frozen dataclass per section.

Refuses unknown, missing and mistyped keys, all named at once, before any work starts. The
`[model]` section is passed as it is to `training.model.build_model`, which checks it.
"""

import tomllib
import typing
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self


class ConfigError(ValueError):
    """A configuration that can't be used; the message lists every fault."""


@dataclass(frozen=True, slots=True)
class DataConfig:
    """Where the sentence pairs are, and which of them are fit to train on."""

    data_dir: str  # relative to the working directory
    train: str  # file names in data_dir: `English<TAB>French` a line, gzip
    valid: str
    test: str
    column_languages: list[str]  # BCP 47, of the two columns
    source_language: str
    target_language: str
    licence: str
    attribution: str
    max_tokens: int  # of a side, with EOS; longer pairs are dropped
    max_length_ratio: float  # of the longer to the shorter side, for pairs of more than 10 tokens
    batch_tokens: int  # source and target tokens of a batch, padding included

    @property
    def source_column(self) -> int:
        return self.column_languages.index(self.source_language)


@dataclass(frozen=True, slots=True)
class VocabularyConfig:
    size: int  # pieces, shared by both languages
    character_coverage: (
        float  # share of the text's characters that get pieces; the rest is spelt in bytes
    )


@dataclass(frozen=True, slots=True)
class AugmentConfig:
    """Probabilities of each change to a training example; 0 turns it off."""

    join: float  # several random pairs become one, so that longer inputs are seen
    max_joined: int  # pairs in one joined example
    upper_case: float  # both sides in capitals
    lower_case_source: float
    source_splits: float  # of each piece, to fall into the two that it was merged from
    target_splits: float


@dataclass(frozen=True, slots=True)
class OptimizerConfig:
    name: str  # "adam", or "muon" for the matrices of the hidden layers with Adam for all else
    peak_rate: float  # of Adam
    muon_peak_rate: float
    betas: list[float]  # of Adam
    weight_decay: float
    warmup_steps: int
    clip_norm: float


@dataclass(frozen=True, slots=True)
class RunConfig:
    total_steps: int
    seed: int
    threads: int
    label_smoothing: float
    ema_decay: float  # of the averaged weights, which are validated and exported
    autocast: bool  # bfloat16 matrix products
    validate_every_steps: int
    validation_sentences: int  # distinct sources
    checkpoint_every_seconds: float
    log_every_steps: int


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    name: str
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
    faults += [f"key {name}.{key} is missing" for key in expected.keys() - given.keys()]
    for key in expected.keys() & given.keys():
        if not _fits(given[key], expected[key]):
            faults.append(f"{name}.{key} = {given[key]!r} is not a {expected[key]}")
    return None if faults else kind(**given)


def _fits(value: Any, kind: Any) -> bool:
    if kind is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, typing.get_origin(kind) or kind)


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
    return faults
