"""What a model can't spell is hidden from it and comes back, whatever it is."""

import re
import unicodedata
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.text.protect import Kind, Masked, Protection, protect
from service.text.unknown import Readable, hide_unknown, is_foreign


def hide(text: str, unknown: Sequence[int], masked: Masked | None = None) -> Readable | None:
    masked = masked or Masked.nothing(text)
    return hide_unknown(masked, (0, len(masked.text)), masked.text, unknown)


@st.composite
def texts(draw: st.DrawFn) -> tuple[str, list[int]]:
    """A text and the places in it that are unknown."""
    text = draw(st.text(max_size=40) | st.text("ab Ż.‹🙂👍🏽\u200d\ufe0f\0\u0301中", max_size=40))
    return text, sorted(draw(st.sets(st.sampled_from(range(len(text)))))) if text else []


@given(case=texts())
def test_nothing_is_lost_and_nothing_unknown_is_seen_but_punctuation(
    case: tuple[str, list[int]],
) -> None:
    text, unknown = case
    readable = hide(text, unknown)
    parts = readable.parts if readable else ()
    hidden = {i for part in parts for i in range(part.start, part.end)}
    for index in unknown:
        category = unicodedata.category(text[index])
        assert index in hidden or category[0] in "PZ" or category in ("Cc", "Cf")
    if readable:
        for word in re.finditer(r"\S+", readable.text):
            start, end = readable.sentence_span(*word.span())
            names = [part.stand_in for part in parts if start <= part.start and part.end <= end]
            assert all(name in word[0] for name in names)
        for part in parts:
            assert (part.start, part.end) == part.masked
            assert part.output == text[part.start : part.end]


def places(text: str, unknown: str) -> list[int]:
    return [index for index, character in enumerate(text) if character in unknown]


@pytest.mark.parametrize(
    ("text", "unknown", "outputs"),
    [
        ("I 🙂 you", "🙂", ["🙂"]),
        ("so much🙂you", "🙂", ["🙂"]),
        ("thumbs 👍🏽👍🏽 up", "👍🏽", ["👍🏽👍🏽"]),
        ("Mr. Zażółć is", "żć", ["Zażółć"]),
        ("a family 👨\u200d👩\u200d👧 here", "👨👩👧\u200d", ["👨\u200d👩\u200d👧"]),
        ("the 出口 sign", "出口", ["出口"]),
        ("a tone 🏽 alone", "🏽", ["🏽"]),
        ("a flag 🇫🇷 here", "🇷", ["🇫🇷"]),
        ("signs 日\0本\0are", "日本\0", ["日\0本\0"]),
    ],
)
def test_whole_words_and_whole_signs_are_hidden(
    text: str, unknown: str, outputs: list[str]
) -> None:
    readable = hide(text, places(text, unknown))
    assert readable and [part.output for part in readable.parts] == outputs
    assert not set(unknown) & set(readable.text)
    assert all(part.stand_in in readable.text.split() for part in readable.parts)


def test_controls_go_and_unknown_punctuation_stays() -> None:
    readable = hide("He\0l\u200dlo ‹you›", [2, 4, 8, 12])
    assert readable and readable.text == "Hello ‹you›" and not readable.parts
    assert readable.sentence_span(0, 5) == (0, 7)
    assert hide("‹you›", [0, 4]) is None


@pytest.mark.parametrize(
    ("text", "unknown", "read", "outputs"),
    [
        ("to {name}日本 now", "日本", "to Tom Boston now", ["{name}", "日本"]),
        ("to 日本{name} now", "日本", "to Boston Tom now", ["日本", "{name}"]),
        ("at {name}\0now", "\0", "at Tom now", ["{name}"]),
        ("the 寿司 bar", "寿司", "the Tom bar", ["sushi"]),
        ("a 寿司日本 bar", "寿司日本", "a Tom Boston bar", ["sushi", "日本"]),
        ("the engine 🙂", "🙂", "the engine Tom", ["moteur", "🙂"]),
    ],
)
def test_what_is_protected_and_what_is_unknown_stand_apart(
    text: str, unknown: str, read: str, outputs: list[str]
) -> None:
    glossary = {"寿司": "sushi", "engine": "moteur"}
    masked = protect(text, Protection(frozenset([Kind.PLACEHOLDER]), glossary=glossary))
    readable = hide(text, places(masked.text, unknown), masked)
    assert readable and readable.text == read
    assert [part.output for part in readable.parts] == outputs


def test_what_another_sentence_has_begun_is_not_hidden_again() -> None:
    masked = protect("A 寿司. B bar 司.", Protection(glossary={"寿司. B bar": "sushi"}))
    readable = hide_unknown(masked, (3, 14), masked.text[3:14], [0, 9])
    assert readable and readable.text.split() == [".", "B", "bar", "Tom."]
    assert [part.output for part in readable.parts] == ["司"]


def test_a_text_is_foreign_if_most_of_its_letters_are_unknown() -> None:
    assert is_foreign("Привет Tom", range(6))
    assert not is_foreign("Это Thomas", range(3))
    assert not is_foreign("🙂 Hi", [0])
