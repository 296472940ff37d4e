"""Shortlists: the words of a sentence, and an output layer that looks at nothing else."""

from collections.abc import Sequence

import numpy as np
import pytest

from export.shortlist import align, build_lexicon
from service.bundle import Bundle, Lexicon
from service.decoding import DecodingOptions, Hypothesis, StepOutput, decode
from service.session import Graphs, OnnxModel, Shortlists
from tests.tiny_bundle import random_sources
from training.data import Example
from training.vocabulary import EOS_ID

SOURCES = random_sources(12, seed=5)
MAX_ROWS = 16


@pytest.fixture(scope="module")
def graphs(listed: Bundle) -> Graphs:
    return Graphs.load(listed, "int8")


@pytest.fixture(scope="module")
def shortlists(graphs: Graphs) -> Shortlists:
    assert graphs.shortlists is not None
    return graphs.shortlists


def first_step(model: OnnxModel, beam_size: int, full: bool = False) -> StepOutput:
    rows = len(SOURCES) * beam_size
    tokens = np.full((len(SOURCES), beam_size), model.start_id)
    return model.step(tokens, np.zeros(rows, np.int32), 5, attention=False, full=full)


def same(these: Sequence[Hypothesis], those: Sequence[Hypothesis]) -> bool:
    return [best.ids for best in these] == [best.ids for best in those]


@pytest.mark.parametrize("beam_size", [1, 3])
def test_candidates_are_the_best_listed_words_of_the_whole_vocabulary(
    graphs: Graphs, shortlists: Shortlists, beam_size: int
) -> None:
    model = OnnxModel(graphs, 64)
    model.append(SOURCES, beam_size, [True] * len(SOURCES))
    listed = first_step(model, beam_size)
    everything = first_step(model, beam_size, full=True).full_log_probs
    assert everything is not None
    lists = shortlists.draw_up(SOURCES)
    for row, (ids, log_probs) in enumerate(zip(listed.ids, listed.log_probs, strict=True)):
        words = np.append(shortlists.common, lists[row // beam_size])
        among = everything[row, words] - np.log(np.exp(everything[row, words]).sum())
        np.testing.assert_allclose(log_probs, -np.sort(-among)[:5], atol=1e-4)
        assert set(ids.tolist()) <= set(words.tolist()) and len(set(ids.tolist())) == 5


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_sentence_with_a_list_is_translated_the_same_in_any_company(
    graphs: Graphs, beam_size: int
) -> None:
    options = DecodingOptions(beam_size=beam_size, max_length=40)
    together = decode(OnnxModel(graphs, MAX_ROWS), SOURCES, options, max_rows=MAX_ROWS)
    for source, hypotheses in zip(SOURCES, together, strict=True):
        (alone,) = decode(OnnxModel(graphs, beam_size), [source], options)
        assert same(alone, hypotheses)
        np.testing.assert_array_equal(alone[0].token_log_probs, hypotheses[0].token_log_probs)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_sentences_with_and_without_a_list_live_together(graphs: Graphs, beam_size: int) -> None:
    chosen = [index % 3 > 0 for index in range(len(SOURCES))]
    by_choice = {
        choice: decode(
            OnnxModel(graphs, MAX_ROWS),
            SOURCES,
            DecodingOptions(beam_size=beam_size, max_length=40, shortlist=choice),
            max_rows=MAX_ROWS,
        )
        for choice in (True, False)
    }
    options = [
        DecodingOptions(beam_size=beam_size, max_length=40, shortlist=choice) for choice in chosen
    ]
    mixed = decode(OnnxModel(graphs, MAX_ROWS), SOURCES, options, max_rows=MAX_ROWS)
    for index, (choice, hypotheses) in enumerate(zip(chosen, mixed, strict=True)):
        assert same(hypotheses, by_choice[choice][index])


def test_without_a_list_it_is_the_model_of_a_bundle_that_knows_none(
    graphs: Graphs, both: Bundle
) -> None:
    options = DecodingOptions(beam_size=2, max_length=40, shortlist=False)
    plain, found = (
        decode(OnnxModel(loaded, MAX_ROWS), SOURCES, options, max_rows=MAX_ROWS)
        for loaded in (Graphs.load(both, "int8"), graphs)
    )
    assert all(same(*pair) for pair in zip(plain, found, strict=True))


def test_a_list_has_the_pieces_of_its_source_and_no_common_ones(shortlists: Shortlists) -> None:
    common = set(shortlists.common.tolist())
    assert EOS_ID in common
    for source, ids in zip(SOURCES, shortlists.draw_up(SOURCES), strict=True):
        words = ids.tolist()
        assert words == sorted(set(words)) and not common & set(words)
        assert set(source) <= common | set(words)
        assert len(words) <= shortlists.max_length(len(source))


def test_a_list_does_not_depend_on_the_other_sentences(shortlists: Shortlists) -> None:
    together = shortlists.draw_up(SOURCES)
    for source, ids in zip(SOURCES, together, strict=True):
        np.testing.assert_array_equal(shortlists.draw_up([source])[0], ids)


def test_a_lexicon_comes_back_from_its_file(listed: Bundle, vocabulary: bytes) -> None:
    examples = [Example(source, source[::-1]) for source in SOURCES]
    lexicon = build_lexicon(examples, vocabulary, num_common=8)
    assert len(lexicon.common) == 8
    again = Lexicon.from_bytes(lexicon.to_bytes(), lexicon.vocabulary_size)
    for name in ("common", "offsets", "words"):
        np.testing.assert_array_equal(getattr(again, name), getattr(lexicon, name))


def test_pieces_that_always_come_together_translate_each_other() -> None:
    """Brown et al. 1993: `a b` / `x y` and `a c` / `x z` leave x to a, y to b and z to c."""
    a, b, c, x, y, z = range(10, 16)
    examples = [Example([a, b], [x, y]), Example([a, c], [x, z]), Example([a], [x])] * 3
    found = align(examples, 16)
    likeliest = {
        source: found.targets[found.sources == source][
            found.probabilities[found.sources == source].argmax()
        ]
        for source in (a, b, c)
    }
    assert likeliest == {a: x, b: y, c: z}
    for source in (a, b, c):
        assert found.probabilities[found.sources == source].sum() == pytest.approx(1)
