"""Tokenizer, spans, layout: relations on a tiny SentencePiece model that is trained here."""

import io
import sys
import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentencepiece import SentencePieceTrainer

from service.errors import BundleError
from service.text import (
    LAYOUT_CHARACTERS,
    Token,
    Tokenizer,
    is_translatable,
    trim,
)

SENTENCES = [
    "The cat sat on the mat.",
    "The dog sat on the log, and the cat saw the dog.",
    "Is it a fine hat? It is a fine hat!",
    "Le chat est assis sur le tapis.",
    "Où est passé l'été ? Un café crème, s'il te plaît.",
    "12 cats and 34 dogs.",
]
ANY_TEXT = st.text()
SPACED_TEXT = st.text(alphabet="aé ﬁ½①ﷺ中👍▁\t\n\u00a0\u00ad\u0301\u200b\u200d\u3000\ufeff\x00¨")


def train(**options: Any) -> Tokenizer:
    model = io.BytesIO()
    settings: dict[str, Any] = dict(
        model_type="bpe", vocab_size=400, hard_vocab_limit=False, byte_fallback=True,
        normalization_rule_name="nfkc", pad_id=0, unk_id=1, bos_id=2, eos_id=3,
        num_threads=1, minloglevel=2,
    ) | options  # fmt: skip
    SentencePieceTrainer.train(sentence_iterator=iter(SENTENCES), model_writer=model, **settings)
    return Tokenizer.from_bytes(model.getvalue())


TOKENIZER = train()
KINDS = {
    "bpe": TOKENIZER,
    "unigram": train(model_type="unigram", vocab_size=350),
    "keeping all space": train(remove_extra_whitespaces=False, add_dummy_prefix=False),
    "marking the end of words": train(treat_whitespace_as_suffix=True),
    "unknown characters": train(byte_fallback=False),
    "case folding": train(normalization_rule_name="nfkc_cf"),
}
for_every_kind = pytest.mark.parametrize("tokenizer", KINDS.values(), ids=KINDS)


def covered(tokens: list[Token], text: str) -> list[str]:
    return [text[token.start : token.end] for token in tokens]


def assert_in_order(tokens: list[Token], text: str) -> None:
    starts, ends = [t.start for t in tokens], [t.end for t in tokens]
    assert starts == sorted(starts) and ends == sorted(ends)
    assert all(0 <= t.start <= t.end <= len(text) for t in tokens)


@for_every_kind
@given(text=ANY_TEXT | SPACED_TEXT)
def test_tokens_have_the_ids_of_encode_and_spans_in_order(tokenizer: Tokenizer, text: str) -> None:
    tokens = tokenizer.encode_tokens(text)
    assert [token.id for token in tokens] == tokenizer.encode(text)
    assert_in_order(tokens, text)


@for_every_kind
@given(data=st.data())
def test_decoded_tokens_have_the_text_of_decode_and_spans_in_order(
    tokenizer: Tokenizer, data: st.DataObject
) -> None:
    ids = data.draw(st.lists(st.integers(0, tokenizer.vocabulary_size - 1)))
    text, tokens = tokenizer.decode_tokens(ids)
    assert text == tokenizer.decode(ids)
    assert [token.id for token in tokens] == ids
    assert_in_order(tokens, text)


@given(text=ANY_TEXT | SPACED_TEXT)
def test_every_visible_character_is_in_the_span_of_a_token(text: str) -> None:
    tokens = TOKENIZER.encode_tokens(text)
    seen = {index for token in tokens for index in range(token.start, token.end)}
    normalized_away = set(LAYOUT_CHARACTERS) | {"\u2581"}
    assert all(
        index in seen
        for index, character in enumerate(text)
        if character not in normalized_away and TOKENIZER.decode(TOKENIZER.encode(character))
    )


@given(text=ANY_TEXT)
def test_a_span_has_no_white_space_at_its_ends_or_nothing_else(text: str) -> None:
    for part in covered(TOKENIZER.encode_tokens(text), text):
        assert part == part.strip() or part.isspace()


def test_what_normalisation_removes_is_in_no_span() -> None:
    text = "\u200eThe \u200b\u00a0cat\u200f "
    tokens = train(normalization_rule_name="nmt_nfkc").encode_tokens(text)
    assert covered(tokens, text) == ["The", "cat"]


def test_a_word_has_the_span_of_its_letters_wherever_it_stands() -> None:
    text = "  The  cat\u00a0sat "
    tokens = TOKENIZER.encode_tokens(text)
    assert [token.piece for token in tokens] == covered(tokens, text) == ["The", "cat", "sat"]


def test_all_bytes_of_a_character_have_its_span() -> None:
    text = "The 👍🏽 cat"
    tokens = TOKENIZER.encode_tokens(text)
    assert covered(tokens, text) == ["The", " ", *["👍"] * 4, *["🏽"] * 4, "cat"]
    assert [token.piece for token in tokens][2:6] == ["<0xF0>", "<0x9F>", "<0x91>", "<0x8D>"]


def test_a_character_that_normalisation_expands_is_the_span_of_all_its_parts() -> None:
    text = "a ﬀ ½"
    tokens = TOKENIZER.encode_tokens(text)
    spans = [(token.piece, text[token.start : token.end]) for token in tokens]
    assert spans.count(("f", "ﬀ")) == 2
    assert ("1", "½") in spans and ("2", "½") in spans


def test_characters_that_normalisation_joins_are_one_span() -> None:
    text = "cafe\u0301"
    tokens = TOKENIZER.encode_tokens(text)
    assert "".join(token.piece for token in tokens) == "café"
    assert covered(tokens, text)[-1].endswith("e\u0301")


def test_the_space_before_the_first_word_is_nowhere_in_the_text() -> None:
    assert TOKENIZER.encode_tokens("中")[0] == Token(TOKENIZER.encode("中")[0], "", 0, 0)


def test_an_unknown_character_shows_as_itself() -> None:
    tokenizer, text = KINDS["unknown characters"], "The 中 cat"
    tokens = tokenizer.encode_tokens(text)
    (unknown,) = [token for token in tokens if token.id == tokenizer.unk_id]
    assert unknown.piece == text[unknown.start : unknown.end] == "中"


@pytest.mark.parametrize("text", SENTENCES + ["中 👍🏽 and Ω", "a\u200db", "\x00"])
def test_decoding_gives_back_what_normalisation_leaves_alone(text: str) -> None:
    ids = TOKENIZER.encode(text)
    assert TOKENIZER.decode(ids) == text
    assert covered(TOKENIZER.encode_tokens(text), text) == covered(
        TOKENIZER.decode_tokens(ids)[1], text
    )


def test_bytes_of_a_broken_character_have_a_replacement_character_each() -> None:
    ids_of = {token.piece: token.id for token in TOKENIZER.encode_tokens("中")}
    broken = [ids_of["<0xE4>"], ids_of["<0xB8>"]]
    text, tokens = TOKENIZER.decode_tokens([*broken, *broken, ids_of["<0xAD>"]])
    assert text == "\ufffd\ufffd中"
    assert covered(tokens, text) == ["\ufffd", "\ufffd", "中", "中", "中"]


def test_special_ids_have_an_empty_span() -> None:
    cat = TOKENIZER.encode("cat")
    text, tokens = TOKENIZER.decode_tokens(
        [TOKENIZER.bos_id, *cat, TOKENIZER.eos_id, TOKENIZER.pad_id]
    )
    assert text == "cat"
    assert covered(tokens, text) == ["", "cat", "", ""]


def test_special_ids_are_those_of_the_model() -> None:
    special = (TOKENIZER.pad_id, TOKENIZER.unk_id, TOKENIZER.bos_id, TOKENIZER.eos_id)
    assert special == (0, 1, 2, 3)
    assert train(bos_id=-1).bos_id == -1


def test_the_text_of_a_special_id_is_only_text() -> None:
    assert TOKENIZER.eos_id not in TOKENIZER.encode("</s> <0xE2>")
    assert TOKENIZER.decode(TOKENIZER.encode("</s> <0xE2>")) == "</s> <0xE2>"


@pytest.mark.parametrize("model", [b"", b"\x00" * 8, b"no model"])
def test_bytes_that_are_no_model_are_refused(model: bytes) -> None:
    with pytest.raises(BundleError, match="not a SentencePiece model"):
        Tokenizer.from_bytes(model)


@pytest.mark.parametrize("call", [TOKENIZER.encode_tokens, TOKENIZER.encode])
@pytest.mark.parametrize("text", ["", "  ", "\u3000\u00a0"])
def test_blank_text_has_no_tokens(call: Callable[[str], list[object]], text: str) -> None:
    assert call(text) == []


def test_no_ids_are_no_text() -> None:
    assert TOKENIZER.decode([]) == ""
    assert TOKENIZER.decode_tokens([]) == ("", [])


@given(text=st.text(alphabet=st.sampled_from(LAYOUT_CHARACTERS + "ab.🙂→")) | ANY_TEXT)
def test_what_is_trimmed_has_no_words_and_the_rest_can_be_trimmed_no_further(text: str) -> None:
    start, end = trim(text, 0, len(text))
    assert trim(text, start, end) == (start, end)
    assert not any(map(str.isalpha, text[:start] + text[end:]))


def test_pictures_are_trimmed_unless_there_is_nothing_else() -> None:
    assert trim("x 👋🏽 Hello! 🙂❤️\n", 2, 15) == (5, 11)
    assert trim(" 🙂 ❤️\n", 0, 6) == (1, 5)


def test_a_blank_text_is_trimmed_to_nothing() -> None:
    start, end = trim(" \r\n\u200b\0", 0, 5)
    assert start == end


def test_all_white_space_and_controls_of_unicode_belong_to_the_layout() -> None:
    characters = map(chr, range(sys.maxunicode + 1))
    controls = {c for c in characters if c.isspace() or unicodedata.category(c) == "Cc"}
    assert controls | {"\u200b", "\u2060", "\ufeff", "\u200e"} <= set(LAYOUT_CHARACTERS)


@pytest.mark.parametrize(
    "core",
    ["cat", "été", "12 cats", "👍 ok", "中文", "e\u0301", "ª"],
)
def test_text_with_a_word_is_translatable(core: str) -> None:
    assert is_translatable(core)


@pytest.mark.parametrize(
    "core",
    ["", "42", "3.14 %", "…?!", "👍🏽 👨\u200d👩", "→ ∞", "\u0301"],
)
def test_text_without_a_word_is_not_translatable(core: str) -> None:
    assert not is_translatable(core)
