"""Searching in windows finds what one search finds."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.text.protect.patterns import _PATTERNS
from service.text.searching import find_all

FILLING = st.sampled_from(["word ", "a", " ", "a.", "1 "]).flatmap(
    lambda unit: st.integers(3900, 4200).map(lambda length: (unit * length)[:length])
)
SIGNS = [
    "{name}",
    "%s",
    "https://a.org/(b)",
    "me@a.org",
    " 1 000 000 km ",
    "$3.50",
    "www." + "x" * 9000,
]
LONG = st.lists(FILLING | st.sampled_from(SIGNS), max_size=8).map("".join)


@pytest.mark.parametrize("pattern", _PATTERNS.values(), ids=str)
@given(text=LONG)
def test_windows_find_what_one_search_finds(pattern: re.Pattern[str], text: str) -> None:
    found = [match.span() for match in find_all(pattern, text)]
    assert found == [match.span() for match in pattern.finditer(text)]


def test_a_match_across_many_windows_is_one() -> None:
    (match,) = find_all(re.compile("a+"), "b" * 4000 + "a" * 100_000 + "b" * 4000)
    assert match.span() == (4000, 104_000)


class CountingPattern:
    """A pattern that counts how many characters it was asked to search."""

    def __init__(self, pattern: str) -> None:
        self.pattern = re.compile(pattern)
        self.most = self.total = 0

    def finditer(self, text: str, start: int, end: int) -> object:
        self.most, self.total = max(self.most, end - start), self.total + end - start
        return self.pattern.finditer(text, start, end)


@pytest.mark.parametrize("unit", ["a", "b", "ab", "b" * 4095 + "a"])
def test_the_work_is_linear(unit: str) -> None:
    pattern, text = CountingPattern("a+"), unit * (1_000_000 // len(unit))
    list(find_all(pattern, text))  # type: ignore[arg-type]
    assert pattern.total <= 4 * len(text)
    assert "b" * 9 not in text or pattern.most <= 10_000
