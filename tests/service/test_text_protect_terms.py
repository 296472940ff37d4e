"""The terms of a glossary in a text."""

from collections.abc import Iterator, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import InvalidArgument
from service.text.protect import Protection, protect
from service.text.protect.terms import Terms
from service.text.rewriting import Span
from service.text.words import joined

WORDS = st.lists(
    st.sampled_from(["a", "b", "ab", "ab c", "c++", "é", "e\u0301", "中", "中国", "_", "'"]),
    min_size=1,
    max_size=4,
)
TERMS = st.builds(" ".join, WORDS) | st.builds("".join, WORDS)


def test_terms_of_a_glossary_are_whole_words_the_longest_first() -> None:
    glossary = {"engine": "moteur", "search engine": "moteur de recherche", "C++": "C++"}
    masked = protect("A search engine, engines, an engine in C++.", Protection(glossary=glossary))
    assert [(p.stand_in, p.output) for p in masked.parts] == [
        ("search engine", "moteur de recherche"), ("engine", "moteur"), ("C++", "C++"),
    ]  # fmt: skip


def test_a_term_is_found_with_a_capital_and_its_own_case_only() -> None:
    masked = protect(
        "Engine ENGINE us US", Protection(glossary={"engine": "moteur", "US": "É.-U."})
    )
    assert [p.output for p in masked.parts] == ["Moteur", "É.-U."]


@pytest.mark.parametrize("glossary", [{"": "x"}, {" a": "x"}, {"a": ""}, {"a": " x"}])
def test_a_glossary_has_bare_words(glossary: dict[str, str]) -> None:
    with pytest.raises(InvalidArgument, match="bare words"):
        Protection(glossary=glossary)


def searched(glossary: Mapping[str, str], text: str) -> Iterator[tuple[Span, str]]:
    """The same by trying every term at every place; for terms without capitals."""
    position = 0
    for start in range(len(text)):
        ends = {start + len(term): term for term in glossary if text.startswith(term, start)}
        whole = [end for end in ends if not {start, end} & inside_words(text)]
        if start >= position and whole:
            position = max(whole)
            yield (start, position), glossary[ends[position]]


def inside_words(text: str) -> set[int]:
    return {place for place in range(1, len(text)) if joined(text[place - 1], text[place])}


@given(st.lists(TERMS, max_size=5), st.lists(TERMS, max_size=8))
def test_one_pass_finds_what_trying_everything_finds(terms: list[str], texts: list[str]) -> None:
    glossary = {term: term.upper() for term in terms}
    text = " ".join(texts)
    assert list(Terms(glossary).find(text)) == list(searched(glossary, text))


def test_a_glossary_is_made_ready_once() -> None:
    protection = Protection(glossary={"engine": "moteur"})
    assert protection.terms is protection.terms
