"""Capitals to usual case and back: nothing moves that a span points at."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.text.case import Truecaser, UpperCased, is_all_caps, is_all_lower, upper_case

# The more frequent first, as a subword vocabulary has them.
VOCABULARY = ["I", "the", "Tom", "on", "saw", "and", "what", "What", "tom", "TV", "Saw", "TOM"]


def encode(word: str) -> list[int]:
    """A known word is one piece, another one a piece for each letter."""
    return [VOCABULARY.index(word)] if word in VOCABULARY else [99] * len(word)


truecase = Truecaser(encode, lambda id: -id)


@pytest.mark.parametrize(
    "text", ["HOW ARE YOU?", "HELLO!", "I AM", "ÉTÉ À", "ΚΑΛΗΜΕΡΑ", "日本 NHK TV", "GO ON, 5 €"]
)
def test_a_sentence_in_capitals_is_told(text: str) -> None:
    assert is_all_caps(text) and not is_all_lower(text)


@pytest.mark.parametrize(
    "text", ["", "OK", "NASA", "U.S.", "12 €", "你好", "Hi", "I am", "NO {name}"]
)
def test_a_word_that_is_usually_written_in_capitals_is_no_such_sentence(text: str) -> None:
    assert not is_all_caps(text)


def test_lower_case_takes_two_words() -> None:
    assert is_all_lower("how are you?")
    assert not any(map(is_all_lower, ["cancel", "How are you?", "42 43", "ok 42"]))


@pytest.mark.parametrize("text", ["Tom and I saw what?", "What saw Tom on TV? I saw the tree."])
def test_words_come_back_in_the_case_of_the_vocabulary(text: str) -> None:
    assert truecase(text.upper()) == truecase(text.lower()) == text


def test_every_sentence_begins_with_a_capital_and_no_abbreviation_changes() -> None:
    assert truecase("“THE DOG!” «SAW?» SEE… SO. 5") == "“The dog!” «Saw?» See… So. 5"
    assert truecase("SAW THE U.S. AND J. R. SMITH") == "Saw the U.S. And J. R. Smith"


@given(st.text())
def test_truecasing_moves_no_character(text: str) -> None:
    recased = Truecaser(lambda word: range(len(word)), float)(text)
    assert len(recased) == len(text)
    assert [old.upper().casefold() for old in text] == [new.upper().casefold() for new in recased]


def test_composed_and_decomposed_text_get_the_same_case() -> None:
    composed = "L'ÉTÉ ET LE CAFÉ"
    decomposed = unicodedata.normalize("NFD", composed)
    assert unicodedata.normalize("NFC", truecase(decomposed)) == truecase(composed)


def test_a_capital_without_one_small_letter_stays() -> None:
    recased = Truecaser(lambda word: [0], float)("A İİ ŉa")
    assert recased == "A İİ ŉa"


def test_capitals_that_are_longer_are_found_by_their_spans() -> None:
    upper = upper_case("Die Straße, ﬁn.")
    assert upper == UpperCased(
        "DIE STRASSE, FIN.", (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 15, 16, 17)
    )
    assert upper.text[slice(*upper.span(4, 10))] == "STRASSE"


@given(st.text())
def test_capitals_are_pythons_and_their_spans_cover_them_in_order(text: str) -> None:
    upper = upper_case(text)
    assert upper.text == text.upper()
    assert upper.span(0, len(text)) == (0, len(upper.text))
    for index, character in enumerate(text):
        assert upper.text[slice(*upper.span(index, index + 1))] == character.upper()
