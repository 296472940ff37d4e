"""What a model can't spell is hidden from it and comes back, whatever it is."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.text.unknown import hide_unknown, is_foreign


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
    masked = hide_unknown(text, unknown)
    hidden = {i for part in masked.parts for i in range(part.start, part.end)} if masked else set()
    for index in unknown:
        category = unicodedata.category(text[index])
        assert index in hidden or category[0] in "PZ" or category in ("Cc", "Cf")
    if masked:
        assert masked.source == text
        for part in masked.parts:
            assert masked.text[slice(*part.masked)] == part.stand_in
            assert masked.source_span(*part.masked) == (part.start, part.end)
            assert part.output == text[part.start : part.end]


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
    ],
)
def test_whole_words_and_whole_signs_are_hidden(
    text: str, unknown: str, outputs: list[str]
) -> None:
    masked = hide_unknown(text, [i for i, character in enumerate(text) if character in unknown])
    assert masked and [part.output for part in masked.parts] == outputs
    assert not set(unknown) & set(masked.text)
    assert all(part.stand_in in masked.text.split() for part in masked.parts)


def test_controls_go_and_unknown_punctuation_stays() -> None:
    masked = hide_unknown("He\0l\u200dlo ‹you›", [2, 4, 8, 12])
    assert masked and masked.text == "Hello ‹you›" and not masked.parts
    assert masked.source_span(0, 5) == (0, 7)
    assert hide_unknown("‹you›", [0, 4]) is None


def test_a_text_is_foreign_if_most_of_its_letters_are_unknown() -> None:
    assert is_foreign("Привет Tom", range(6))
    assert not is_foreign("Это Thomas", range(3))
    assert not is_foreign("🙂 Hi", [0])
