"""A given beginning: forced, biased, a whole translation, and alternatives after it."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from service.decoding import (
    Batch,
    DecodingOptions,
    FinishReason,
    Hypothesis,
    StepOutput,
    decode,
    score,
)
from tests.reference_search import EOS, greedy
from tests.toys import ToyModel, alone, identical, random_sources

LARGE = ToyModel(20, seed=2, eos_bias=1.0)
SOURCES = random_sources(20, seed=1)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_every_hypothesis_begins_with_the_prefix_at_the_models_own_log_probabilities(
    beam_size: int,
) -> None:
    options = DecodingOptions(
        beam_size=beam_size, num_hypotheses=beam_size, prefix=(7, 7, 3), no_repeat_ngram_size=1
    )
    for source in SOURCES:
        for found in alone(LARGE, source, options):
            assert found.ids[:3] == (7, 7, 3)
            for position in range(3):
                expected = LARGE.predict(source, found.ids[:position])[0][found.ids[position]]
                assert found.token_log_probs[position] == expected


def test_a_prefix_that_greedy_search_would_say_changes_nothing() -> None:
    options = DecodingOptions(attention=True, max_length=20)
    for source in SOURCES:
        (found,) = alone(LARGE, source, options)
        for prefix in (found.ids, found.ids[:2]):
            assert identical([found], alone(LARGE, source, replace(options, prefix=prefix)))


def test_beams_that_begin_with_the_best_hypothesis_find_none_that_is_worse() -> None:
    options = DecodingOptions(beam_size=4, max_length=20)
    for source in SOURCES:
        (found,) = alone(LARGE, source, options)
        (again,) = alone(LARGE, source, replace(options, prefix=found.ids))
        assert again.score >= found.score


def test_a_prefix_as_long_as_the_limit_is_the_translation() -> None:
    options = DecodingOptions(beam_size=2, num_hypotheses=2, prefix=(3, 4), max_length=2)
    (found,) = alone(LARGE, SOURCES[0], options)
    assert found.ids == (3, 4) and found.finish_reason is FinishReason.LENGTH_LIMIT


def test_no_ratio_cuts_a_prefix() -> None:
    options = DecodingOptions(prefix=(3,) * 30, max_length_ratio=1.0)
    assert len(alone(LARGE, [2, EOS], options)[0].ids) == 30


def test_a_whole_translation_is_scored_among_sentences_that_are_translated() -> None:
    targets = [tuple(source[::-1][1:]) for source in SOURCES]
    batch = Batch[int](ToyModel(20, seed=2, eos_bias=1.0), 1)
    options = [
        DecodingOptions.forcing(target, EOS) if index % 2 else DecodingOptions(max_length=12)
        for index, target in enumerate(targets)
    ]
    batch.join(range(len(SOURCES)), SOURCES, options)
    results: dict[int, list[Hypothesis]] = {}
    while len(batch):
        results |= dict(batch.step())
    scored = score(LARGE, SOURCES, targets)
    for index, source in enumerate(SOURCES):
        if index % 2:
            assert identical(results[index], [scored[index]])
            assert scored[index].ids == targets[index]
            assert scored[index].finish_reason is FinishReason.END_OF_SENTENCE
        else:
            assert identical(results[index], alone(LARGE, source, options[index]))


def test_the_log_probabilities_of_a_forced_translation_are_the_models() -> None:
    targets = [(5, 9, 9, 2), (), (4,)]
    for source, target, found in zip(SOURCES, targets, score(LARGE, SOURCES[:3], targets)):  # noqa: B905
        expected = [
            LARGE.predict(source, target[:position])[0][token]
            for position, token in enumerate((*target, EOS))
        ]
        assert found.token_log_probs.tolist() == expected
        assert found.log_prob == pytest.approx(sum(map(float, expected)), abs=1e-12)
        assert found.attention is not None and found.attention.shape == (len(target), len(source))


def test_a_strong_bias_is_a_prefix_and_a_weak_one_is_none() -> None:
    options = DecodingOptions(prefix=(7, 7, 3), max_length=12)
    for source in SOURCES:
        forced, strong, weak, free = (
            alone(LARGE, source, each)[0].ids
            for each in (
                options,
                replace(options, prefix_bias_beta=0.999),
                replace(options, prefix_bias_beta=1e-9),
                replace(options, prefix=()),
            )
        )
        assert strong == forced
        assert weak == free


def test_any_bias_from_above_zero_to_below_one_is_computed_without_a_warning() -> None:
    biased = DecodingOptions(prefix=(7, 7, 3), max_length=12)
    free, forced = replace(biased, prefix=()), biased
    for beta, like in ((5e-324, free), (1e-300, free), (math.nextafter(1, 0), forced)):
        for source in SOURCES:
            (found,) = alone(LARGE, source, replace(biased, prefix_bias_beta=beta))
            (expected,) = alone(LARGE, source, like)
            assert found.ids == expected.ids
            assert np.isfinite(found.token_log_probs).all()


def test_bias_ends_where_a_beam_leaves_the_prefix() -> None:
    options = DecodingOptions(prefix=(7, 7, 3), prefix_bias_beta=0.3, max_length=12)
    left = 0
    for source in SOURCES:
        (found,) = alone(LARGE, source, options)
        assert found.ids == greedy(LARGE, source, options)
        left += found.ids[:3] != (7, 7, 3)
    assert 0 < left < len(SOURCES)


@pytest.mark.parametrize("prefix", [(), (4, 6)])
def test_alternatives_are_the_likeliest_tokens_after_the_prefix_each_gone_on_with_greedily(
    prefix: tuple[int, ...],
) -> None:
    options = DecodingOptions(
        beam_size=5, num_hypotheses=5, return_alternatives=True, prefix=prefix, max_length=15
    )
    for source in SOURCES:
        log_probs = LARGE.predict(source, prefix)[0]
        tokens = [token for token in np.argsort(-log_probs).tolist() if token != EOS][:5]
        expected = {
            greedy(LARGE, source, DecodingOptions(prefix=(*prefix, token), max_length=15))
            for token in tokens
        }
        found = alone(LARGE, source, options)
        assert {hypothesis.ids for hypothesis in found} == expected
        assert {hypothesis.ids[len(prefix)] for hypothesis in found} == set(tokens)


def test_an_unlikely_alternative_is_left_out() -> None:
    options = DecodingOptions(beam_size=5, num_hypotheses=5, return_alternatives=True)
    for source in SOURCES:
        probs = np.exp(LARGE.predict(source, ())[0])
        likely = {token for token in range(1, 20) if probs[token] >= 0.1}
        found = alone(LARGE, source, replace(options, min_alternative_prob=0.1))
        assert {hypothesis.ids[0] for hypothesis in found} <= likely
        assert len(found) == min(5, len(likely))


def test_forced_sentences_have_no_shortlist() -> None:
    asked: list[list[bool]] = []

    class Listening(ToyModel):
        def append(self, sources, beam_size, shortlist=None):  # type: ignore[no-untyped-def]
            asked.append(list(shortlist))
            super().append(sources, beam_size, shortlist)

    options = [
        DecodingOptions(),
        DecodingOptions(prefix=(3,)),
        DecodingOptions(no_repeat_ngram_size=2),
        DecodingOptions(shortlist=False),
    ]
    decode(Listening(20), [[EOS]] * 4, options)
    assert asked == [[True, False, True, False]]


@pytest.mark.parametrize("beam_size", [1, 3])
def test_the_whole_vocabulary_is_looked_at_only_while_a_prefix_is_said(beam_size: int) -> None:
    looked = list[bool]()

    class Watched(ToyModel):
        def step(self, *arguments: Any) -> StepOutput:
            looked.append(arguments[-1])
            return super().step(*arguments)

    watched = Watched(20, seed=2, eos_bias=-9.0)
    options = DecodingOptions(beam_size=beam_size, prefix=(3, 7), max_length=6)
    [[found, *_]] = decode(watched, [SOURCES[0]], options)
    assert found.ids[:2] == (3, 7)
    assert looked == [True, True, False, False, False, False]
