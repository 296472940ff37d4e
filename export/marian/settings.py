"""What the JSON files of a checkpoint say, as far as it decides what the network computes.

`save_pretrained` leaves out what is the default of `transformers.MarianConfig`; so those are the
defaults here. `generation_config.json` has the last word on the search; old checkpoints have none,
and keep its keys in `config.json`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from export.marian.errors import MarianError
from training.transformer import Activation

CONFIG, GENERATION, TOKENIZER = "config.json", "generation_config.json", "tokenizer_config.json"

_ACTIVATIONS: Mapping[str, Activation] = {
    "relu": "relu",
    "swish": "swish",
    "silu": "swish",
    "gelu": "gelu",
}
# What another value would mean is a network that no MarianMTModel is.
_FIXED: Mapping[str, object] = {
    "normalize_before": False,
    "normalize_embedding": False,
    "add_final_layer_norm": False,
    "static_position_embeddings": True,
    "tie_word_embeddings": True,
    "forced_bos_token_id": None,
}
_MAX_FILE_BYTES = 2**26


@dataclass(frozen=True, slots=True)
class MarianSettings:
    """Sizes as in `TransformerConfig`; ids are those of the checkpoint.

    source_rows, target_rows: of the tables, one and the same if `is_shared`. forbidden: ids that
    are never said. num_beams, length_penalty: the search of who made the model.
    has_two_vocabularies: whether target ids are those of another file.
    """

    source_rows: int
    target_rows: int
    is_shared: bool
    pad: int
    eos: int
    decoder_start: int
    model_size: int
    num_heads: int
    feed_forward_size: int
    encoder_layers: int
    decoder_layers: int
    activation: Activation
    scale_embedding: bool
    max_positions: int
    forbidden: frozenset[int]
    num_beams: int
    length_penalty: float
    has_two_vocabularies: bool


def read_settings(directory: Path) -> MarianSettings:
    """Raises MarianError with everything that is missing, wrong or not supported."""
    config = _Values(directory, CONFIG, read_json(directory, CONFIG))
    later = _optional(directory, GENERATION)
    search = _Values(directory, GENERATION if later else CONFIG, config.values | later)
    tokenizer = _Values(directory, TOKENIZER, _optional(directory, TOKENIZER))
    faults = config.faults
    search.faults = tokenizer.faults = faults
    config.choose("model_type", {"marian": "marian"}, "")
    for key, value in _FIXED.items():
        config.demand(key, value)
    settings = _settings(config, search, tokenizer)
    for id_key, id in (("pad_token_id", settings.pad), ("eos_token_id", settings.eos)):
        config.check_id(id_key, id, settings.target_rows)
    config.check_id("decoder_start_token_id", settings.decoder_start, settings.target_rows)
    if settings.model_size % settings.num_heads:
        faults.append(
            f"{CONFIG}: d_model is {settings.model_size}, no multiple of the "
            f"{settings.num_heads} encoder_attention_heads"
        )
    if faults:
        raise MarianError(directory, faults)
    return settings


def read_json(directory: Path, name: str) -> dict[str, Any]:
    """The object in a JSON file of a checkpoint. Raises MarianError if it is none."""
    path = directory / name
    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise MarianError(directory, [f"{name} has more than {_MAX_FILE_BYTES} bytes"])
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise MarianError(directory, [f"{name} can't be read: {error.strerror}"]) from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, MarianError):
            raise
        raise MarianError(directory, [f"{name} is no JSON: {error}"]) from error
    if not isinstance(document, dict):
        raise MarianError(directory, [f"{name} has no object, but a {type(document).__name__}"])
    return document


def _optional(directory: Path, name: str) -> dict[str, Any]:
    return read_json(directory, name) if (directory / name).exists() else {}


def _settings(config: "_Values", search: "_Values", tokenizer: "_Values") -> MarianSettings:
    rows = config.integer("vocab_size", 58101)
    is_shared = config.flag("share_encoder_decoder_embeddings", True)
    pad = config.integer("pad_token_id", 58100, least=0)
    return MarianSettings(
        source_rows=rows,
        target_rows=rows if is_shared else config.integer("decoder_vocab_size", rows),
        is_shared=is_shared,
        pad=pad,
        eos=config.integer("eos_token_id", 0, least=0),
        decoder_start=config.integer("decoder_start_token_id", 58100, least=0),
        model_size=config.integer("d_model", 1024),
        num_heads=config.same("encoder_attention_heads", "decoder_attention_heads", 16),
        feed_forward_size=config.same("encoder_ffn_dim", "decoder_ffn_dim", 4096),
        encoder_layers=config.integer("encoder_layers", 12),
        decoder_layers=config.integer("decoder_layers", 12),
        activation=cast(Activation, config.choose("activation_function", _ACTIVATIONS, "gelu")),
        scale_embedding=config.flag("scale_embedding", False),
        max_positions=config.integer("max_position_embeddings", 1024),
        forbidden=frozenset({pad, *search.single_ids("bad_words_ids")}),
        num_beams=search.integer("num_beams", 1),
        length_penalty=search.number("length_penalty", 1.0),
        has_two_vocabularies=tokenizer.flag("separate_vocabs", False),
    )


class _Values:
    """The keys of one file; what is wrong with them is noted, and a usable value goes on."""

    def __init__(self, directory: Path, name: str, values: dict[str, Any]) -> None:
        self.values = values
        self.faults: list[str] = []
        self._name = name

    def integer(self, key: str, default: int, least: int = 1) -> int:
        value = self.values.get(key, default)
        if type(value) is int and value >= least:
            return value
        self._fault(key, value, f"must be an integer of at least {least}")
        return default

    def number(self, key: str, default: float) -> float:
        value = self.values.get(key, default)
        if type(value) in (int, float) and 0 <= value <= 10:
            return float(value)
        self._fault(key, value, "must be a number from 0 to 10")
        return default

    def flag(self, key: str, default: bool) -> bool:
        value = self.values.get(key, default)
        if isinstance(value, bool):
            return value
        self._fault(key, value, "must be true or false")
        return default

    def choose(self, key: str, choices: Mapping[str, str], default: str) -> str:
        value = self.values.get(key, default)
        if isinstance(value, str) and value in choices:
            return choices[value]
        self._fault(key, value, f"supported: {', '.join(choices)}")
        return next(iter(choices.values()))

    def same(self, key: str, other: str, default: int) -> int:
        """Of both sides."""
        value, second = self.integer(key, default), self.integer(other, default)
        if value != second:
            self._fault(other, second, f"{key} is {value}; supported are sides that are alike")
        return value

    def demand(self, key: str, expected: object) -> None:
        value = self.values.get(key, expected)
        if value != expected:
            self._fault(key, value, f"only {json.dumps(expected)} is supported")

    def single_ids(self, key: str) -> list[int]:
        """Of a list of sequences of ids, all of one id."""
        value = self.values.get(key) or []
        if isinstance(value, list) and all(
            isinstance(each, list) and len(each) == 1 and type(each[0]) is int for each in value
        ):
            return [each[0] for each in value]
        self._fault(key, value, "supported are sequences of one id each")
        return []

    def check_id(self, key: str, id: int, rows: int) -> None:
        if id >= rows:
            self._fault(key, id, f"the target's table has {rows} rows")

    def _fault(self, key: str, value: object, expected: str) -> None:
        self.faults.append(f"{self._name}: {key} is {json.dumps(value)}, {expected}")
