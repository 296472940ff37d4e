"""Where a sentence that is too long is cut."""

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.text.split import best_cut, split_tokens


def tokens_of(text: str) -> list[int]:
    """Where tokens start: one for each character that isn't a space."""
    return [index for index, character in enumerate(text) if not character.isspace()]


def parts(text: str, limit: int, language: str = "en") -> list[str]:
    cuts = split_tokens(text, tokens_of(text), limit, language)
    return [text[begin:end] for begin, end in pairwise([0, *cuts, len(text)])]


@given(text=st.text(min_size=2, max_size=99), limit=st.integers(1, 40))
def test_characters_of_many_tokens_are_cut_apart(text: str, limit: int) -> None:
    starts = [index for index in range(len(text)) for _ in range(4)]
    cuts = split_tokens(text, starts, limit, "en")
    assert all(begin < end for begin, end in pairwise([0, *cuts, len(text)]))
    assert cuts or len(starts) <= limit


@given(text=st.text(max_size=300), limit=st.integers(1, 40))
def test_parts_are_the_text_and_none_is_too_long(text: str, limit: int) -> None:
    found = parts(text, limit)
    assert "".join(found) == text
    assert all(len(tokens_of(part)) <= limit for part in found)


@given(text=st.text(max_size=300), limit=st.integers(1, 40))
def test_there_are_about_as_few_parts_as_can_be(text: str, limit: int) -> None:
    fewest = -(-len(tokens_of(text)) // limit)
    assert len(parts(text, limit)) <= max(1, 2 * fewest)


def test_what_fits_is_not_cut() -> None:
    assert parts("Nothing to do, is there?", 30) == ["Nothing to do, is there?"]


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("we went home, it was. late then", "en", ["we went home, it was.", " late then"]),
        ("we went home, because it was late", "en", ["we went home,", " because it was late"]),
        ("we went home because it was late", "en", ["we went home ", "because it was late"]),
        ("we went home as if it was so late", "de", ["we went home as ", "if it was so late"]),
        ("on rentre chez nous parce que tard", "fr-CA", ["on rentre chez nous ", "parce que tard"]),
        ("aaaaaaaaaabbbbbbbbbb", "en", ["aaaaaaaaaa", "bbbbbbbbbb"]),
        ("costs 3,500 and more or less 7.25", "xx", ["costs 3,500 and ", "more or less 7.25"]),
    ],
)
def test_the_best_kind_of_place_wins(text: str, language: str, expected: list[str]) -> None:
    limit = len(tokens_of(text)) - 4
    assert parts(text, limit, language) == expected


@pytest.mark.parametrize(
    "character",
    ["e\u0301\u0302", "👍🏽", "👨\u200d👩\u200d👧", "🇫🇷", "각", "❤\ufe0f",
     "🏴\U000e0067\U000e007f"],
)  # fmt: skip
def test_what_reads_as_one_character_is_not_cut(character: str) -> None:
    text = unicodedata.normalize("NFD", character) * 12
    size = len(text) // 12
    for ideal in range(size, len(text) - size):
        cut = best_cut(text, (ideal - size, ideal + size), ideal, "en")
        assert cut % size == 0


def test_one_endless_character_is_cut_after_all() -> None:
    assert len(parts("e" + "\u0301" * 50, 20)) > 1
