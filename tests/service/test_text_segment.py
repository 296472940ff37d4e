"""Where sentences begin and end, and what stands between them."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.text.segment import MAX_WINDOW, Piece, split_lines, split_sentences
from tests.corpus import SENTENCES

PROSE = st.text(
    alphabet=st.sampled_from(
        "aB 12.!?…。,;:'\"«»()-*•#>\n\r\t\0\u00a0\u00ad\u200b\u202e🙂👍🏽é\u0301中"
    )
)
SPLITTERS = pytest.mark.parametrize("split", [split_sentences, split_lines])


def sentences(text: str) -> list[str]:
    return [text[piece.start : piece.end] for piece in split_sentences(text, "en")]


def lines(text: str) -> list[str]:
    return [text[piece.start : piece.end] for piece in split_lines(text, "en")]


@SPLITTERS
@given(text=st.text() | PROSE)
def test_pieces_are_in_order_and_hold_every_letter(split: object, text: str) -> None:
    assert callable(split)
    pieces: list[Piece] = list(split(text, "en"))
    end = 0
    for piece in pieces:
        assert end <= piece.start < piece.end <= len(text)
        assert not any(map(str.isalpha, text[end : piece.start]))
        end = piece.end
    assert not any(map(str.isalpha, text[end:]))


@SPLITTERS
@given(text=st.text() | PROSE)
def test_no_piece_goes_over_a_line_break(split: object, text: str) -> None:
    assert callable(split)
    assert all(len(text[p.start : p.end].splitlines()) == 1 for p in split(text, "en"))


@pytest.mark.parametrize(
    "separator", [" ", "  ", "\n", "\r\n\r\n", "\t", "\u00a0", "\n  * ", " 🙂 "]
)
def test_sentences_come_apart_again(separator: str) -> None:
    assert sentences(separator.join(SENTENCES)) == list(SENTENCES)


@pytest.mark.parametrize(
    "text",
    ["Mr. Smith and Dr. J. R. Jones, Ph.D., met in the U.K. at 3 p.m. on Monday.",
     "See e.g. chapter 3.5, i.e. the end.", 'He said "Stop!" and ran.', "Wait... what?",
     "Version 2.0.1 of example.com is out.", "I.B.M. vs. Acme Inc. was in Jan. 2020."],
)  # fmt: skip
def test_a_full_stop_inside_a_sentence_does_not_end_it(text: str) -> None:
    assert sentences(text) == [text]
    assert sentences(f"{text} Nobody knew.") == [text, "Nobody knew."]


def test_words_that_are_also_abbreviations_end_sentences() -> None:
    assert sentences("Give it to me. I said no. Are you OK? I'm OK. He is ill.") == [
        "Give it to me.", "I said no.", "Are you OK?", "I'm OK.", "He is ill."
    ]  # fmt: skip


def test_bullets_numbers_and_quotes_stay_outside() -> None:
    text = "  - One.\n\t* Two. Three.\n10) Four\n(5) five\n> > Six.\n## Seven\n• Eight\n— Nine."
    assert sentences(text) == [
        "One.", "Two.", "Three.", "Four", "five", "Six.", "Seven", "Eight", "Nine."
    ]  # fmt: skip
    assert sentences("-5 degrees\n1.5 million\n#tag") == ["-5 degrees", "1.5 million", "#tag"]


def test_a_line_is_one_piece_where_sentences_are_not_wanted() -> None:
    assert lines(" - One. Two!\n\n 3) Three. 🙂") == ["- One. Two!", "3) Three."]


@pytest.mark.parametrize(
    "variant",
    ["Ｈｅｌｌｏ！　Ｉ ａｍ Ｔｏｍ．", "Hello!\u200b \u202bI am\u202c Tom.",
     "Hel\u00adlo!\u2003I am Tom.", "He\0llo! \0I am Tom."],
)  # fmt: skip
def test_spelling_does_not_move_sentences(variant: str) -> None:
    plain = "Hello! I am Tom."
    assert len(sentences(variant)) == len(sentences(plain)) == 2


def test_other_scripts_need_no_space_after_a_sentence() -> None:
    assert sentences("今日は。元気ですか？はい。") == ["今日は。", "元気ですか？", "はい。"]


def test_blank_text_has_no_sentences() -> None:
    assert sentences("") == sentences(" \n\u3000\r\n\0\u200b") == lines("\t\n") == []


def test_a_long_line_has_the_sentences_of_its_parts() -> None:
    chosen = random.Random(1).choices(SENTENCES, k=600)
    assert len(text := " ".join(chosen)) > 5 * MAX_WINDOW
    assert sentences(text) == chosen
    assert not any(piece.is_part for piece in split_sentences(text, "en"))


@SPLITTERS
def test_a_sentence_longer_than_the_window_comes_in_parts_at_good_places(split: object) -> None:
    assert callable(split)
    text = "it was late, and we were tired, " * 600
    pieces: list[Piece] = list(split(text, "en"))
    parts = [text[piece.start : piece.end] for piece in pieces]
    assert all(piece.is_part for piece in pieces)
    assert all(len(part) <= MAX_WINDOW and part.endswith(",") for part in parts)
    assert " ".join(parts) == text.strip()


def test_what_follows_a_long_sentence_is_whole() -> None:
    *parts, last = split_sentences("word " * 2000 + "end. Next one.", "en")
    assert all(piece.is_part for piece in parts) and not last.is_part


@SPLITTERS
@pytest.mark.parametrize(
    "unit",
    ["a", " ", "\n", ". ", "« a. b ", "🇫", "e\u0301", "- ", "(a. ", "1. ", "🙂", "\u3000", ">"],
)
def test_any_long_text_is_split(split: object, unit: str) -> None:
    assert callable(split)
    text = unit * (100_000 // len(unit))
    assert all(piece.end - piece.start <= MAX_WINDOW for piece in split(text, "en"))


def test_unknown_languages_are_split_all_the_same() -> None:
    assert len(list(split_sentences("Hello there. How are you?", "xx-Latn"))) == 2
