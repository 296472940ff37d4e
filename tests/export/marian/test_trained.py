"""A model that was trained for some seconds says what `generate` says, of 500 sentences."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from transformers import MarianMTModel, MarianTokenizer

from export.marian.weights import WEIGHT_FILES
from tests.corpus import TATOEBA, needs_tatoeba
from tests.export.marian.comparing import faults
from tests.export.marian.conftest import LANGUAGE_TOKEN, import_checkpoint
from tests.tiny_marian import VARIANTS, Variant, load_tokenizer, save, write_marian
from training.data import Pair, read_pairs
from training.evaluate import load_eval_set

NUM_SENTENCES, NUM_STEPS, BATCH_SIZE = 500, 250, 64
# Two translations that the network itself finds equally good: their scores differ by rounding.
ALLOWED = 1


@pytest.mark.slow
@pytest.mark.timeout(900)
@needs_tatoeba
@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: variant.name)
def test_500_sentences_become_what_generate_says(variant: Variant, tmp_path: Path) -> None:
    pairs = read_pairs(TATOEBA / "train.tsv.gz")[::4]
    texts = [pair.source for pair in pairs], [pair.target for pair in pairs]
    directory = write_marian(
        tmp_path / variant.name, variant, texts, 1000, d_model=64, max_position_embeddings=256
    )
    tokenizer = load_tokenizer(directory)
    model: MarianMTModel = MarianMTModel.from_pretrained(directory).float()
    first, last = train(model, tokenizer, pairs, LANGUAGE_TOKEN * variant.multilingual)
    assert last < first - 0.5
    for name in WEIGHT_FILES:  # which are mapped into the model's memory
        (directory / name).unlink(missing_ok=True)
    save(model, directory, variant)
    imported = import_checkpoint(tmp_path, directory, variant)
    sources, _ = load_eval_set(TATOEBA / "test.tsv.gz")
    chosen = sources[:: len(sources) // NUM_SENTENCES][:NUM_SENTENCES]
    for beam_size in (1, 4):
        found = faults(imported, chosen, beam_size)
        assert len(found) <= ALLOWED, found


def train(
    model: MarianMTModel, tokenizer: MarianTokenizer, pairs: Sequence[Pair], token: str
) -> tuple[float, float]:
    """The loss of the first and of the last batch."""
    dice, losses = random.Random(0), list[float]()
    # A checkpoint that keeps its positions thaws them.
    learned = [p for name, p in model.named_parameters() if "embed_positions" not in name]
    optimizer = torch.optim.Adam(learned, lr=2e-3)
    model.train()
    for _ in range(NUM_STEPS):
        some = dice.sample(pairs, BATCH_SIZE)
        batch = tokenizer(
            [f"{token} {pair.source}".strip() for pair in some],
            text_target=[pair.target for pair in some],
            return_tensors="pt",
            padding=True,
        )
        batch["labels"][batch["labels"] == model.config.pad_token_id] = -100
        loss = model(**batch).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    model.eval()
    return losses[0], losses[-1]
