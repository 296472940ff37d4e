"""Beam search finds what exhaustive search finds, under every penalty and every filter."""

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from service.decoding import DecodingOptions, LengthForm, Stopping
from service.decoding.stopping import Ended, Ranking
from tests.reference_search import EOS, exhaustive, greedy
from tests.toys import ToyModel, alone, identical, random_sources

LARGE = ToyModel(20, seed=2, eos_bias=1.0)
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "coverage": {"coverage_penalty": 0.4},
    "least length": {"min_length": 4},
    "ratio": {"min_length_ratio": 0.7},
    "repetition": {"repetition_penalty": 1.7},
    "no token twice": {"no_repeat_ngram_size": 1},
    "no pair twice": {"no_repeat_ngram_size": 2},
    "no triple twice": {"no_repeat_ngram_size": 3},
    "a token": {"suppress_tokens": (2,)},
    "tokens": {"suppress_tokens": (1, 3)},
    "sequences": {"suppress_sequences": ((2, 1), (3,), (1, 1, 2))},
    "a prefix": {"prefix": (3, 2)},
    "a biased prefix": {"prefix": (3, 2, 2), "prefix_bias_beta": 0.4},
    "much": {
        "no_repeat_ngram_size": 2,
        "suppress_tokens": (2,),
        "repetition_penalty": 1.3,
        "min_length": 2,
        "coverage_penalty": 0.1,
        "prefix": (3,),
    },
}


def assert_found(toy: ToyModel, source: list[int], options: DecodingOptions) -> None:
    found = alone(toy, source, options)
    expected = exhaustive(toy, source, options)[: options.num_hypotheses]
    assert [hypothesis.ids for hypothesis in found] == [each.ids for each in expected]
    for field in ("score", "log_prob"):
        assert [getattr(hypothesis, field) for hypothesis in found] == pytest.approx(
            [getattr(each, field) for each in expected], abs=1e-5
        )


@pytest.mark.parametrize("form", list(LengthForm))
@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
@pytest.mark.parametrize("coverage_penalty", [0.0, 0.2, 2.0])
def test_a_wide_beam_finds_what_exhaustive_search_finds_under_every_penalty(
    form: LengthForm, alpha: float, coverage_penalty: float
) -> None:
    options = DecodingOptions(
        beam_size=64,
        num_hypotheses=5,
        length_penalty=alpha,
        length_form=form,
        coverage_penalty=coverage_penalty,
        max_length=4,
    )
    for seed, source in enumerate(random_sources(25, seed=int(10 * alpha))):
        assert_found(ToyModel(4, seed), source, options)


@pytest.mark.parametrize("asked", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("num_hypotheses", [1, 5])
def test_a_wide_beam_finds_what_exhaustive_search_finds_among_what_may_be_said(
    asked: Mapping[str, Any], num_hypotheses: int
) -> None:
    options = DecodingOptions(
        beam_size=64, num_hypotheses=num_hypotheses, max_length=5, length_penalty=0.8
    )
    for seed, source in enumerate(random_sources(8, seed=3)):
        assert_found(ToyModel(4, seed), source, replace(options, **asked))


@pytest.mark.parametrize("asked", OPTIONS.values(), ids=OPTIONS)
def test_greedy_search_takes_the_likeliest_token_that_may_come(asked: Mapping[str, Any]) -> None:
    options = DecodingOptions(max_length=25, **asked)
    for source in random_sources(15, seed=4):
        (found,) = alone(LARGE, source, options)
        assert found.ids == greedy(LARGE, source, options)


@pytest.mark.parametrize("asked", OPTIONS.values(), ids=OPTIONS)
def test_asking_for_more_never_changes_the_better_ones(asked: Mapping[str, Any]) -> None:
    options = DecodingOptions(beam_size=4, max_length=20, **asked)
    for source in random_sources(8, seed=5):
        n_best = [alone(LARGE, source, replace(options, num_hypotheses=num)) for num in range(1, 5)]
        for fewer, more in itertools.pairwise(n_best):
            assert identical(fewer, more[: len(fewer)])


def test_the_search_goes_on_while_coverage_can_still_rise() -> None:
    """The first to end is the likeliest, and leaves the source uncovered; a later one wins."""
    options = DecodingOptions(beam_size=8, length_penalty=0, coverage_penalty=1, max_length=12)
    longer = 0
    for source in random_sources(40, seed=6):
        (covering,) = alone(LARGE, source, options)
        (likeliest,) = alone(LARGE, source, replace(options, coverage_penalty=0.0))
        assert covering.log_prob <= likeliest.log_prob + 1e-9
        longer += len(covering.ids) > len(likeliest.ids)
    assert longer > 10


def test_with_a_coverage_penalty_finished_waits_for_all_that_patience_asks_for() -> None:
    options = DecodingOptions(beam_size=2, length_penalty=0, stopping=Stopping.FINISHED)
    ended = Ended(-1.0, -1.0, rank=0, position=0, parent=0, token=EOS, token_log_prob=-1.0)
    assert Ranking(options).add(ended) == np.inf
    waiting = Ranking(replace(options, coverage_penalty=0.1))
    assert [waiting.add(ended) for _ in range(2)] == [-np.inf, np.inf]


def test_where_candidates_do_not_suffice_the_model_is_asked_for_more() -> None:
    """Nearly all that the model says is suppressed, and what is left is far down the list."""
    toy = ToyModel(200, seed=9)
    options = DecodingOptions(beam_size=2, max_length=8, suppress_tokens=tuple(range(1, 190)))
    for source in random_sources(10, seed=9):
        for found in alone(toy, source, options):
            assert not set(options.suppress_tokens) & set(found.ids)
        greedily = replace(options, beam_size=1)
        assert alone(toy, source, greedily)[0].ids == greedy(toy, source, greedily)
    assert toy.mores > 10


def test_the_model_is_not_asked_for_more_while_candidates_suffice() -> None:
    toy = ToyModel(200, seed=9)
    options = DecodingOptions(beam_size=2, max_length=8, no_repeat_ngram_size=2, min_length=3)
    for source in random_sources(10, seed=9):
        alone(toy, source, options)
    assert toy.mores == 0


def test_a_sentence_of_which_nothing_may_be_said_gets_no_hypothesis_and_harms_nobody() -> None:
    silent = DecodingOptions(suppress_tokens=(EOS, *range(1, 4)))
    toy = ToyModel(4, seed=1)
    assert alone(toy, [2, EOS], silent) == []
    wide = DecodingOptions(beam_size=3, suppress_sequences=((EOS,), (1,), (2,), (3,)))
    assert alone(toy, [2, EOS], wide) == []
