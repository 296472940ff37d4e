"""Word alignments from matrices that were written by hand."""

import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.text.alignment import Alignment, align
from service.text.rewriting import Span


def tokens(*pieces: str) -> tuple[str, list[Span]]:
    """A text and the spans of its pieces; a space before one is not part of it."""
    text, spans = "", list[Span]()
    for piece in pieces:
        text += piece
        spans.append((len(text) - len(piece.lstrip()), len(text)))
    return text, spans


def aligned(source: Sequence[str], target: Sequence[str], weights: object) -> Alignment:
    return align(*tokens(*source), *tokens(*target), np.array(weights, np.float32))


def named(alignment: Alignment, source: str, target: str) -> list[tuple[str, str]]:
    return [
        (
            source[slice(*alignment.source_words[first])],
            target[slice(*alignment.target_words[second])],
        )
        for first, second in alignment.pairs
    ]


def test_each_target_word_has_the_source_word_that_it_looks_at_most() -> None:
    found = aligned(
        ["red", " car", ""],
        ["voiture", " rouge"],
        [[0.2, 0.7, 0.1], [0.8, 0.1, 0.1]],
    )
    assert found.pharaoh == "1-0 0-1"
    assert named(found, "red car", "voiture rouge") == [("car", "voiture"), ("red", "rouge")]


def test_pieces_of_a_word_count_together_on_either_side() -> None:
    # Each piece looks more at `I` than at either piece of `tired`, and `ué` more than at both.
    found = aligned(
        ["I", " ti", "red", ""],
        ["fatig", "ué"],
        [[0.4, 0.35, 0.25, 0.0], [0.5, 0.3, 0.15, 0.05]],
    )
    assert found.source_words == ((0, 1), (2, 7))
    assert found.target_words == ((0, 7),)
    assert found.pairs == ((1, 0),)


def test_a_piece_of_several_words_makes_them_one() -> None:
    found = aligned(["the", " water", ""], ["l'", "eau"], [[0.6, 0.3, 0.1], [0.1, 0.8, 0.1]])
    assert found.target_words == ((0, 2), (2, 5))
    assert found.pairs == ((0, 0), (1, 1))


def test_what_looks_most_at_the_end_of_the_sentence_has_no_pair() -> None:
    found = aligned(["a", "."], ["un", "."], [[0.9, 0.1], [0.2, 0.8]])
    unpaired = align(
        "a", [(0, 1), (1, 1)], "un.", [(0, 2), (2, 3)], np.array([[0.9, 0.1], [0.2, 0.8]])
    )
    assert found.pairs == ((0, 0), (1, 1))
    assert unpaired.pairs == ((0, 0),) and len(unpaired.target_words) == 2


def test_words_that_no_token_stands_for_are_not_counted() -> None:
    found = align("<b>cat</b>", [(3, 6), (10, 10)], "chat", [(0, 4)], np.array([[0.9, 0.1]]))
    assert found.source_words == ((3, 6),)
    assert found.pharaoh == "0-0"


@pytest.mark.parametrize("weight", [np.nan, 0.0])
def test_weights_that_say_nothing_pair_nothing(weight: float) -> None:
    found = aligned(["a", ""], ["un"], [[weight, weight]])
    assert found.pairs == () and found.pharaoh == ""


def test_texts_without_words_have_no_pairs() -> None:
    assert align("", [], "", [], np.zeros((0, 0))) == Alignment((), (), ())
    assert align("a", [(0, 1)], "", [], np.zeros((0, 1))).pairs == ()


def test_moving_moves_the_words_and_keeps_the_pairs() -> None:
    found = aligned(["a", ""], ["un"], [[0.9, 0.1]]).moved(5, 7)
    assert found == Alignment(((5, 6),), ((7, 9),), ((0, 0),))


@given(st.data())
def test_whatever_the_spans_are_every_pair_is_of_words_that_are_there(data: st.DataObject) -> None:
    sides = []
    for _ in range(2):
        text = data.draw(st.text("ab' .\u00e9", max_size=12))
        place = st.integers(0, len(text))
        places = data.draw(st.lists(st.tuples(place, place), max_size=5))
        spans = [(min(pair), max(pair)) for pair in places]
        sides.append((text, spans))
    (source, source_spans), (target, target_spans) = sides
    shape = len(target_spans), len(source_spans)
    weights = np.random.default_rng(0).random(shape)
    found = align(source, source_spans, target, target_spans, weights)
    for text, found_words in ((source, found.source_words), (target, found.target_words)):
        assert list(found_words) == sorted(found_words)
        assert all(text[slice(*word)].strip() for word in found_words)
    assert all(
        first < len(found.source_words) and second < len(found.target_words)
        for first, second in found.pairs
    )
    assert len({second for _, second in found.pairs}) == len(found.pairs)
    assert re.fullmatch(r"(\d+-\d+( \d+-\d+)*)?", found.pharaoh)
