"""Every variant of a tiny checkpoint, and the bundle that the command made of it."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from transformers import MarianMTModel, MarianTokenizer

from export.__main__ import main
from export.marian import MarianCheckpoint, read_checkpoint
from export.verify.translations import tokenizers_of
from service.bundle import Bundle, read_bundle
from service.text import Tokenizer
from tests.tiny_marian import ENGLISH, VARIANTS, Variant, load_tokenizer, write_marian

LANGUAGE_TOKEN = ">>fra<<"


@dataclass(frozen=True, slots=True)
class Imported:
    """theirs, their_tokenizer: as `transformers` reads the checkpoint, in float32."""

    variant: Variant
    directory: Path
    bundle: Bundle
    checkpoint: MarianCheckpoint
    theirs: MarianMTModel
    their_tokenizer: MarianTokenizer

    @property
    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        return tokenizers_of(self.bundle)

    def written_for_them(self, text: str) -> str:
        return f"{LANGUAGE_TOKEN} {text}" if self.variant.multilingual else text

    def their_source_ids(self, ours: list[int]) -> list[int]:
        return [self.checkpoint.vocabularies.source.rows[id] for id in ours]

    def their_target_ids(self, ours: list[int]) -> list[int]:
        return [self.checkpoint.vocabularies.target.rows[id] for id in ours]


@pytest.fixture(scope="session", params=VARIANTS, ids=lambda variant: variant.name)
def imported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Imported:
    variant: Variant = request.param
    folder = tmp_path_factory.mktemp("marian")
    return import_checkpoint(folder, write_marian(folder / variant.name, variant), variant)


def import_checkpoint(folder: Path, directory: Path, variant: Variant) -> Imported:
    """Write `folder / "bundle"` and read it back."""
    assert main(arguments(folder, directory, variant)) == 0
    return Imported(
        variant,
        directory,
        read_bundle(folder / "bundle"),
        read_checkpoint(directory),
        MarianMTModel.from_pretrained(directory).float().eval(),
        load_tokenizer(directory),
    )


def arguments(folder: Path, directory: Path, variant: Variant) -> list[str]:
    """Of the command that writes `folder / "bundle"`; int8 of random weights may be anything."""
    sentences = folder / "sentences.txt"
    sentences.write_text("\n".join(ENGLISH))
    given = [
        *("import", directory, folder / "bundle"),
        *("--source-language", "en", "--target-language", "fr"),
        *("--precision", "fp32", "int8", "--calibrate", sentences),
        *("--max-target-tokens", 32, "--max-bleu-loss", 100),
        *("--licence", "CC-BY-4.0", "--attribution", "the makers"),
    ]
    token = ["--target-token", LANGUAGE_TOKEN] if variant.multilingual else []
    return [*map(str, given), *token]
