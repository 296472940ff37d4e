"""A whole checkpoint: the network, its tokenizers, and what is known of it."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from export.marian.errors import MarianError
from export.marian.settings import CONFIG, GENERATION, MarianSettings, read_json, read_settings
from export.marian.vocabulary import Vocabularies, read_vocabularies
from export.marian.weights import WEIGHT_FILES, read_weights
from training.transformer import Transformer, TransformerConfig


@dataclass(frozen=True, slots=True)
class MarianCheckpoint:
    """model: in evaluation mode, in the order of ids of the vocabularies.

    facts: the settings as they were found, and the SHA-256 of the weights, as plain JSON.
    """

    directory: Path
    settings: MarianSettings
    vocabularies: Vocabularies
    model: Transformer
    facts: dict[str, Any]

    @property
    def tokenizers(self) -> dict[str, bytes]:
        """The files of a bundle."""
        return {
            "source.model": self.vocabularies.source_model,
            "target.model": self.vocabularies.target_model,
        }

    def source_prefix(self, token: str | None) -> tuple[int, ...]:
        """The ids before every source of a model for the language that a token names.

        Raises MarianError for an unknown token, and if none is given but one is needed.
        """
        known = self.vocabularies.language_tokens
        some = ", ".join([*known[:12], *["…"] * (len(known) > 12)]) or "none"
        if token is None:
            if known:
                fault = f"it has several target languages; name one with --target-token: {some}"
                raise MarianError(self.directory, [fault])
            return ()
        if token not in known:
            raise MarianError(self.directory, [f"--target-token {token!r} isn't among its: {some}"])
        id = self.vocabularies.source.id_of(token)
        assert id is not None
        return (id,)


def read_checkpoint(directory: Path) -> MarianCheckpoint:
    """Raises MarianError for a folder that isn't one that can be imported."""
    settings = read_settings(directory)
    vocabularies = read_vocabularies(directory, settings)
    model = _config(settings, vocabularies).build()
    model.load_state_dict(read_weights(directory, settings, vocabularies))
    return MarianCheckpoint(directory, settings, vocabularies, model.eval(), _facts(directory))


def _config(settings: MarianSettings, vocabularies: Vocabularies) -> TransformerConfig:
    source, target = vocabularies.source, vocabularies.target
    return TransformerConfig(
        vocabulary_size=len(target.rows),
        model_size=settings.model_size,
        num_heads=settings.num_heads,
        feed_forward_size=settings.feed_forward_size,
        encoder_layers=settings.encoder_layers,
        decoder_layers=settings.decoder_layers,
        max_positions=settings.max_positions,
        source_vocabulary_size=None if source is target else len(source.rows),
        activation=settings.activation,
        position_layout="halves",
        scale_embedding=settings.scale_embedding,
        output_bias=True,
    )


def _facts(directory: Path) -> dict[str, Any]:
    weights = next(path for name in WEIGHT_FILES if (path := directory / name).is_file())
    with weights.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {
        "folder": directory.resolve().name,
        "weights": {"file": weights.name, "sha256": digest},
        "config": read_json(directory, CONFIG),
        "generation_config": read_json(directory, GENERATION)
        if (directory / GENERATION).exists()
        else {},
    }
