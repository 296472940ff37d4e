"""Reading, augmentation and batching: what an epoch is made of, and that it can be made again."""

import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from service.text import Tokenizer
from training.config import AugmentConfig, DataConfig
from training.data import (
    Example,
    Pair,
    TrainingSet,
    augment,
    bucket,
    collate,
    encode_pairs,
    pad,
    read_pairs,
)
from training.splitting import PieceSplitter
from training.vocabulary import (
    BOS_ID,
    EOS_ID,
    PAD_ID,
    load_vocabulary,
    merge_ranks,
    train_vocabulary,
)

PAIRS = [
    Pair(f"The {noun} is {state}.", f"Le {noun} est {state} !")
    for noun in ("cat", "dog", "house", "car", "tree")
    for state in ("big", "red", "old", "new", "here")
]
PLAIN = AugmentConfig(
    join=0.0,
    max_joined=3,
    upper_case=0.0,
    lower_case_source=0.0,
    source_splits=0.0,
    target_splits=0.0,
)
DATA = DataConfig(
    data_dir="",
    train="",
    valid="",
    test="",
    column_languages=["en", "fr"],
    source_language="en",
    target_language="fr",
    licence="",
    attribution="",
    max_tokens=50,
    max_length_ratio=3.0,
    batch_tokens=120,
)


@pytest.fixture(scope="module")
def vocabulary() -> bytes:
    text = [side for pair in PAIRS for side in (pair.source, pair.target)]
    return train_vocabulary(text, size=420, character_coverage=1.0)


@pytest.fixture(scope="module")
def tokenizer(vocabulary: bytes) -> Tokenizer:
    return load_vocabulary(vocabulary)


def training_set(vocabulary: bytes, pairs: list[Pair] = PAIRS, **changes: Any) -> TrainingSet:
    return TrainingSet(pairs, vocabulary, DATA, replace(PLAIN, **changes), seed=3)


def write_lines(path: Path, text: str) -> Path:
    path.write_bytes(gzip.compress(text.encode()))
    return path


def test_the_source_is_the_column_asked_for(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "pairs.tsv.gz", "Run!\tCours\u202f!\nGo.\tVa.\n")
    assert read_pairs(path) == [Pair("Run!", "Cours\u202f!"), Pair("Go.", "Va.")]
    assert read_pairs(path, source_column=1)[1] == Pair("Va.", "Go.")


def test_a_line_without_two_columns_is_refused_by_its_number(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "pairs.tsv.gz", "Run!\tCours !\nGo.\n")
    with pytest.raises(ValueError, match=r"pairs\.tsv\.gz:2 has 1 columns"):
        read_pairs(path)


def test_both_sides_are_what_serving_makes_of_them_with_eos_at_the_end(
    tokenizer: Tokenizer,
) -> None:
    for pair, example in zip(PAIRS, encode_pairs(tokenizer, PAIRS), strict=True):
        assert example.source_ids == [*tokenizer.encode(pair.source), EOS_ID]
        assert example.target_ids == [*tokenizer.encode(pair.target), EOS_ID]


def test_an_epoch_holds_every_pair_once(vocabulary: bytes, tokenizer: Tokenizer) -> None:
    batches = training_set(vocabulary).batches(epoch=0)
    texts = [tokenizer.decode(e.source_ids) for batch in batches for e in batch]
    assert sorted(texts) == sorted(pair.source for pair in PAIRS)


def test_an_epoch_is_the_same_whenever_it_is_made_and_differs_from_others(
    vocabulary: bytes,
) -> None:
    first = training_set(vocabulary, join=0.3, upper_case=0.2, source_splits=0.3)
    later = training_set(vocabulary, join=0.3, upper_case=0.2, source_splits=0.3)
    later.batches(epoch=0)
    assert first.batches(epoch=1) == later.batches(epoch=1)
    assert first.batches(epoch=1) != first.batches(epoch=2)


def test_split_pieces_change_the_pieces_but_not_the_text(
    vocabulary: bytes, tokenizer: Tokenizer
) -> None:
    plain = [e for batch in training_set(vocabulary).batches(0) for e in batch]
    dropped = [e for b in training_set(vocabulary, source_splits=0.5).batches(0) for e in b]
    assert sum(len(e.source_ids) for e in dropped) > sum(len(e.source_ids) for e in plain)
    decode = tokenizer.decode
    assert sorted(decode(e.source_ids) for e in dropped) == sorted(
        decode(e.source_ids) for e in plain
    )


def test_every_split_piece_is_replaced_by_the_two_that_spell_it(
    vocabulary: bytes, tokenizer: Tokenizer
) -> None:
    rows = [example.source_ids for example in encode_pairs(tokenizer, PAIRS)]
    random = np.random.default_rng(0)
    splitter = PieceSplitter(merge_ranks(vocabulary), tokenizer.vocabulary_size)
    assert splitter.split(rows, 0.0, random) == rows
    once = splitter.split(rows, 1.0, random)
    for row, halves in zip(rows, once, strict=True):
        assert len(halves) > len(row) and halves[-1] == EOS_ID
        assert tokenizer.decode(halves) == tokenizer.decode(row)


def test_short_pairs_are_seen_more_often(vocabulary: bytes, tokenizer: Tokenizer) -> None:
    length = len(encode_pairs(tokenizer, PAIRS[:1])[0].target_ids)
    for common_tokens, times in ((0, 1), (length, 1), (length + 1, 1), (2 * length, 8)):
        data = replace(DATA, common_tokens=common_tokens)
        [batch] = TrainingSet(PAIRS[:1], vocabulary, data, PLAIN, seed=1).batches(epoch=0)
        assert len(batch) == times


def test_pathological_pairs_are_dropped(vocabulary: bytes) -> None:
    bad = [Pair("cat", "Le chat est " * 10), Pair("x" * 60, "y" * 60), Pair("", "vide")]
    assert len(training_set(vocabulary, PAIRS + bad)) == len(PAIRS)


def test_joined_pairs_keep_their_sides_together() -> None:
    pairs = [Pair(f"s{i}", f"t{i}") for i in range(100)]
    joined = augment(pairs, replace(PLAIN, join=1.0), np.random.default_rng(0))
    assert {len(p.source.split()) for p in joined[:-1]} == {2, 3}
    assert " ".join(p.source for p in joined).split() == [p.source for p in pairs]
    assert all(p.target == p.source.replace("s", "t") for p in joined)


def test_capitals_are_for_both_sides_and_lower_case_for_the_source_alone() -> None:
    random = np.random.default_rng(0)
    pair = Pair("Café", "Café noir")
    assert augment([pair], replace(PLAIN, upper_case=1.0), random) == [Pair("CAFÉ", "CAFÉ NOIR")]
    assert augment([pair], replace(PLAIN, lower_case_source=1.0), random) == [
        Pair("café", "Café noir")
    ]
    assert augment([pair], PLAIN, random) == [pair]


def test_no_batch_exceeds_its_budget_of_padded_tokens() -> None:
    random = np.random.default_rng(0)
    lengths = random.integers(2, 20, size=(200, 2)).tolist()
    batches = bucket([Example([5] * s, [6] * t) for s, t in lengths], batch_tokens=100)
    assert sum(map(len, batches)) == 200
    for batch in batches:
        longest = max(len(e.source_ids) for e in batch) + max(len(e.target_ids) for e in batch)
        assert len(batch) * longest <= 100


def test_an_example_above_the_budget_is_a_batch_of_its_own() -> None:
    batches = bucket([Example([5] * 90, [6] * 90), Example([5], [6])], batch_tokens=100)
    assert [len(batch) for batch in batches] == [1, 1]


def test_a_batch_feeds_the_decoder_the_labels_shifted_by_one() -> None:
    batch = collate([Example([7, 8, EOS_ID], [5, EOS_ID]), Example([9, EOS_ID], [4, 5, 6, EOS_ID])])
    assert batch.source_ids.tolist() == [[7, 8, EOS_ID], [9, EOS_ID, PAD_ID]]
    assert batch.source_lengths.tolist() == [3, 2]
    assert batch.target_ids.tolist() == [[BOS_ID, 5, PAD_ID, PAD_ID], [BOS_ID, 4, 5, 6]]
    assert batch.label_ids.tolist() == [[5, EOS_ID, PAD_ID, PAD_ID], [4, 5, 6, EOS_ID]]


def test_padding_fills_to_the_longest_row() -> None:
    assert pad([[1], [2, 3]]).tolist() == [[1, PAD_ID], [2, 3]]
