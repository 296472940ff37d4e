"""Ids before every source, such as one that names the target language."""

from dataclasses import replace
from pathlib import Path

import pytest

from service.bundle import Limits
from service.errors import BundleError
from service.text import Token, Tokenizer
from service.translator.options import TextOptions
from service.translator.reader import Reader
from tests.tiny_bundle import LIMITS, TEXT, VOCABULARY_SIZE, tiny_bundle
from training.vocabulary import EOS_ID, train_vocabulary

PREFIX = (7, 9)


@pytest.fixture(scope="module")
def model() -> bytes:
    return train_vocabulary(TEXT * 25, VOCABULARY_SIZE, 1.0)


def test_it_comes_before_every_text_but_a_blank_one(model: bytes) -> None:
    plain, prefixed = Tokenizer.from_bytes(model), Tokenizer.from_bytes(model, PREFIX)
    assert prefixed.encode(TEXT[0]) == [*PREFIX, *plain.encode(TEXT[0])]
    assert prefixed.encode(" ") == [] == prefixed.encode_tokens(" ")


def test_its_tokens_stand_for_no_characters(model: bytes) -> None:
    plain, prefixed = Tokenizer.from_bytes(model), Tokenizer.from_bytes(model, PREFIX)
    first, second, *others = prefixed.encode_tokens(TEXT[0])
    assert others == plain.encode_tokens(TEXT[0])
    assert [first, second] == [
        Token(id, token.piece, 0, 0) for id, token in zip(PREFIX, (first, second), strict=True)
    ]


def test_an_id_that_is_no_piece_is_refused(model: bytes) -> None:
    with pytest.raises(BundleError, match="no piece 512 of the source prefix"):
        Tokenizer.from_bytes(model, (512,))


def test_parts_of_a_long_sentence_have_it_too_and_room_for_it(model: bytes, tmp_path: Path) -> None:
    manifest = tiny_bundle(tmp_path / "bundle", "transformer").manifest
    manifest = replace(manifest, limits=Limits(16, 16), source_prefix=PREFIX)
    reader = Reader(manifest, Tokenizer.from_bytes(model, PREFIX))
    units = list(reader.units([" ".join(TEXT).replace(".", "")], TextOptions()))
    assert len(units) > 3
    for unit in units:
        assert tuple(unit.ids[:2]) == PREFIX and unit.ids[-1] == EOS_ID
        assert len(unit.ids) <= 16


@pytest.mark.parametrize(
    ("prefix", "fault"),
    [((-1,), "must be ids of at least 0"), ((5,) * 47, "at most 46 leave room")],
)
def test_a_manifest_with_an_impossible_one_is_faulty(
    tmp_path: Path, prefix: tuple[int, ...], fault: str
) -> None:
    manifest = tiny_bundle(tmp_path / "bundle", "transformer").manifest
    assert manifest.limits == LIMITS
    assert fault in " ".join(replace(manifest, source_prefix=prefix).faults())
