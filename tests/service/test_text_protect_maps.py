"""Texts made out of texts, and the parts of writing that stay together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.text.rewriting import Rewriter, Span, SpanMap
from service.text.words import is_loose, joined, words

TEXT = "abcdefgh"


@st.composite
def rewritings(draw: st.DrawFn) -> tuple[str, SpanMap, list[tuple[Span, Span]]]:
    """A new text of TEXT, its map, and the spans of what was replaced in each."""
    writer, edits = Rewriter(TEXT), []
    for _ in range(draw(st.integers(0, 5))):
        writer.keep(draw(st.integers(writer.position, len(TEXT))))
        start = writer.position
        end = draw(st.integers(start, len(TEXT)))
        edits.append(((start, end), writer.replace(end, draw(st.text("XYZ", max_size=3)))))
    return *writer.finish(), edits


@given(rewritings())
def test_what_was_kept_is_found_again(made: tuple[str, SpanMap, list[tuple[Span, Span]]]) -> None:
    new, map, edits = made
    replaced = {index for (start, end), _ in edits for index in range(start, end)}
    for index in set(range(len(TEXT))) - replaced:
        start, end = map.to_new(index, index + 1)
        assert new[start:end] == TEXT[index]
        assert map.to_old(start, end) == (index, index + 1)


@given(rewritings(), st.data())
def test_a_span_that_touches_an_edit_has_all_of_it(
    made: tuple[str, SpanMap, list[tuple[Span, Span]]], data: st.DataObject
) -> None:
    new, map, edits = made
    for old, written in edits:
        if old[0] < old[1]:
            index = data.draw(st.integers(old[0], old[1] - 1))
            assert map.to_new(index, index + 1) == written
        if written[0] < written[1]:
            index = data.draw(st.integers(written[0], written[1] - 1))
            assert map.to_old(index, index + 1) == old


@given(rewritings())
def test_spans_in_order_stay_in_order(
    made: tuple[str, SpanMap, list[tuple[Span, Span]]],
) -> None:
    new, map, _ = made
    for length in (0, 1, 3):
        for text, other, move in [(TEXT, new, map.to_new), (new, TEXT, map.to_old)]:
            spans = [move(i, min(i + length, len(text))) for i in range(len(text) + 1)]
            assert spans == sorted(spans)
            assert all(0 <= start <= end <= len(other) for start, end in spans)
            assert [end for _, end in spans] == sorted(end for _, end in spans)


def test_what_was_inserted_is_outside_of_the_spans_beside_it() -> None:
    writer = Rewriter("ab")
    writer.keep(1)
    writer.insert("<>")
    text, map = writer.finish()
    assert text == "a<>b"
    assert (map.to_new(0, 1), map.to_new(1, 2), map.to_new(1, 1)) == ((0, 1), (3, 4), (1, 1))
    assert map.to_old(1, 3) == (1, 1)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("L'eau, s'il vous plaît !",
         ["L", "'", "eau", ",", "s", "'", "il", "vous", "plaît", "!"]),
        ("e\u0301te\u0301 👍🏽 👨\u200d👩", ["e\u0301te\u0301", "👍🏽", "👨\u200d👩"]),
        ("我看Tom了", ["我", "看", "Tom", "了"]),
        ("a_1 3.5%", ["a_1", "3", ".", "5", "%"]),
        ("", []),
        ("  ", []),
    ],
)  # fmt: skip
def test_words_are_what_belongs_together(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in words(text)] == expected


@given(st.text())
def test_words_have_every_character_but_the_space_between(text: str) -> None:
    spans = words(text)
    assert all(start < end for start, end in spans)
    assert all(end <= start for (_, end), (start, _) in zip(spans, spans[1:], strict=False))
    inside = {index for start, end in spans for index in range(start, end)}
    outside = [c for index, c in enumerate(text) if index not in inside]
    assert all(c.isspace() or joined(" ", c) for c in outside)


@pytest.mark.parametrize(
    "text, left, right, expected",
    [("a b", 1, 2, True), ("t-il", 1, 1, False), ("a.", 1, 1, True), ("我看", 1, 1, True)],
)
def test_a_word_fits_between_words_that_are_apart(
    text: str, left: int, right: int, expected: bool
) -> None:
    assert is_loose(text, left, right) is expected
