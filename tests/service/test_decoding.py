"""Decoding a toy: what the search finds, and what a hypothesis says of itself."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from service.decoding import DecodingOptions, FinishReason, Stopping, decode, score
from tests.toys import ToyModel, alone, identical, random_sources

EOS = ToyModel.eos_id
SMALL = ToyModel(4, seed=1)
LARGE = ToyModel(20, seed=2, eos_bias=1.0)


def exhaustive(
    toy: ToyModel, source: Sequence[int], alpha: float, limit: int
) -> list[tuple[float, tuple[int, ...]]]:
    """Score and ids of every hypothesis there is, best first."""

    def grow(prefix: tuple[int, ...], total: float) -> Iterator[tuple[float, tuple[int, ...]]]:
        log_probs, _ = toy.predict(source, prefix)
        for token, log_prob in enumerate(log_probs.tolist()):
            ids = prefix if token == EOS else (*prefix, token)
            if token == EOS or len(ids) == limit:
                yield (total + log_prob) / (len(prefix) + 1) ** alpha, ids
            else:
                yield from grow(ids, total + log_prob)

    return sorted(grow((), 0.0), reverse=True)


def test_greedy_takes_the_most_probable_token_until_the_end() -> None:
    for source in random_sources(20, seed=3):
        (found,) = alone(LARGE, source, DecodingOptions())
        ids: list[int] = []
        token = -1
        while token != EOS and len(ids) < DecodingOptions().length_limit(len(source)):
            token = int(LARGE.predict(source, ids)[0].argmax())
            ids += [token] if token != EOS else []
        assert found.ids == tuple(ids)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, 2.0])
def test_a_wide_beam_finds_what_exhaustive_search_finds(alpha: float) -> None:
    options = DecodingOptions(beam_size=64, num_hypotheses=5, length_penalty=alpha, max_length=4)
    for source in random_sources(100, seed=int(10 * alpha)):
        found = alone(SMALL, source, options)
        expected = exhaustive(SMALL, source, alpha, limit=4)[:5]
        assert [hypothesis.ids for hypothesis in found] == [ids for _, ids in expected]
        assert [hypothesis.score for hypothesis in found] == pytest.approx(
            [value for value, _ in expected], abs=1e-12
        )


def test_fewer_hypotheses_than_asked_come_only_if_there_are_no_more() -> None:
    options = DecodingOptions(beam_size=8, num_hypotheses=8, max_length=1)
    assert len(alone(SMALL, [2, EOS], options)) == 4  # one per token of the vocabulary


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_asking_for_more_hypotheses_never_changes_the_better_ones(alpha: float) -> None:
    options = DecodingOptions(beam_size=5, length_penalty=alpha)
    for source in random_sources(40, seed=5):
        n_best = [alone(LARGE, source, replace(options, num_hypotheses=num)) for num in range(1, 6)]
        for fewer, more in itertools.pairwise(n_best):
            assert identical(fewer, more[: len(fewer)])


def test_no_hypothesis_comes_twice() -> None:
    options = DecodingOptions(beam_size=6, num_hypotheses=6)
    for source in random_sources(30, seed=6):
        found = [hypothesis.ids for hypothesis in alone(LARGE, source, options)]
        assert len(set(found)) == len(found) == 6


def ctranslate2_search(
    toy: ToyModel, source: Sequence[int], options: DecodingOptions
) -> list[tuple[int, ...]]:
    """The rule of ctranslate2's beam search, written for one sentence with lists."""
    beams: list[tuple[float, tuple[int, ...]]] = [(0.0, ())]
    ended: list[tuple[float, tuple[int, ...]]] = []
    top_ended = False
    limit = options.length_limit(len(source))
    for length in range(1, limit + 1):
        candidates = [
            (total + log_prob, (*ids, token))
            for total, ids in beams
            for token, log_prob in enumerate(toy.predict(source, ids)[0].tolist())
        ]
        candidates.sort(key=lambda candidate: -candidate[0])
        candidates = candidates[: 2 * options.beam_size]
        for rank, (total, ids) in enumerate(candidates[: options.beam_size]):
            if ids[-1] == EOS or length == limit:
                top_ended |= rank == 0
                kept = ids[:-1] if ids[-1] == EOS else ids
                ended.append((total / length**options.length_penalty, kept))
        enough = len(ended) >= options.patience_count
        if options.length_penalty == 0:
            enough = top_ended and len(ended) >= options.num_hypotheses
        if enough or length == limit:
            break
        beams = [beam for beam in candidates if beam[1][-1] != EOS][: options.beam_size]
    ended.sort(key=lambda hypothesis: -hypothesis[0])
    return [ids for _, ids in ended[: options.num_hypotheses]]


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("patience", [0.5, 1.0, 1.7])
def test_finished_is_the_rule_of_ctranslate2(alpha: float, patience: float) -> None:
    options = DecodingOptions(
        beam_size=4,
        num_hypotheses=2,
        length_penalty=alpha,
        max_length_ratio=1.0,
        stopping=Stopping.FINISHED,
        patience=patience,
    )
    for source in random_sources(25, seed=7, lengths=range(30)):
        found = [hypothesis.ids for hypothesis in alone(LARGE, source, options)]
        assert found == ctranslate2_search(LARGE, source, options)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_scores_are_those_of_the_returned_tokens(beam_size: int) -> None:
    options = DecodingOptions(
        beam_size=beam_size, num_hypotheses=beam_size, length_penalty=0.7, max_length=9
    )
    for source in random_sources(30, seed=8):
        for found in alone(LARGE, source, options):
            ended = found.finish_reason is FinishReason.END_OF_SENTENCE
            tokens = (*found.ids, EOS) if ended else found.ids
            log_probs = [
                LARGE.predict(source, tokens[:position])[0][token]
                for position, token in enumerate(tokens)
            ]
            assert found.token_log_probs.tolist() == log_probs
            assert found.log_prob == pytest.approx(sum(map(float, log_probs)), abs=1e-12)
            assert found.score == pytest.approx(found.log_prob / len(tokens) ** 0.7, abs=1e-12)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_hypothesis_that_reaches_the_limit_says_so(beam_size: int) -> None:
    endless = ToyModel(20, eos_bias=-100.0)
    options = DecodingOptions(beam_size=beam_size, num_hypotheses=beam_size, max_length=5)
    for found in alone(endless, [2, 3, EOS], options):
        assert found.finish_reason is FinishReason.LENGTH_LIMIT
        assert len(found.ids) == len(found.token_log_probs) == 5


def test_an_end_in_the_last_place_is_an_end() -> None:
    abrupt = ToyModel(20, eos_bias=100.0)
    (found,) = alone(abrupt, [2, EOS], DecodingOptions(max_length=1))
    assert found.ids == () and found.finish_reason is FinishReason.END_OF_SENTENCE


@pytest.mark.parametrize("beam_size", [1, 4])
def test_attention_is_that_of_the_returned_hypothesis(beam_size: int) -> None:
    options = DecodingOptions(
        beam_size=beam_size, num_hypotheses=beam_size, attention=True, max_length=9
    )
    sources = random_sources(30, seed=9)
    for source, hypotheses in zip(sources, decode(LARGE, sources, options), strict=True):
        for found in hypotheses:
            assert found.attention is not None
            assert found.attention.shape == (len(found.ids), len(source))
            assert found.attention.dtype == np.float32
            np.testing.assert_allclose(found.attention.sum(axis=1), 1, rtol=1e-5)
            for position, weights in enumerate(found.attention):
                _, expected = LARGE.predict(source, found.ids[:position])
                np.testing.assert_allclose(weights, expected, rtol=1e-5)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_attention_is_the_mean_of_its_heads_for_those_who_ask_for_them(beam_size: int) -> None:
    one = DecodingOptions(beam_size=beam_size, attention=True, max_length=9)
    sources = random_sources(30, seed=9)
    options = [replace(one, attention_heads=index % 2 == 0) for index in range(len(sources))]
    usual = decode(LARGE, sources, one)
    for index, hypotheses in enumerate(decode(LARGE, sources, options)):
        (found,), (expected,) = hypotheses, usual[index]
        heads = found.attention_heads
        assert identical([replace(found, attention_heads=None)], [expected])
        assert (heads is None) == (index % 2 == 1)
        if heads is not None:
            assert found.attention is not None and heads.shape == (2, *found.attention.shape)
            np.testing.assert_allclose(heads.mean(axis=0), found.attention, rtol=1e-6)
            is_certain = not found.ids or len(sources[index]) == 1
            assert is_certain or not np.allclose(heads[0], heads[1])


def test_forcing_the_returned_tokens_gives_the_same_scores_and_attention() -> None:
    sources = random_sources(30, seed=10)
    options = DecodingOptions(beam_size=4, attention=True, length_penalty=0.8)
    found = [hypotheses[0] for hypotheses in decode(LARGE, sources, options)]
    targets = [hypothesis.ids for hypothesis in found]
    forced = score(LARGE, sources, targets, length_penalty=0.8, max_rows=8)
    # Forcing adds EOS, so only hypotheses that ended with it are the same.
    ended = [
        index
        for index in range(30)
        if len(forced[index].token_log_probs) == len(found[index].token_log_probs)
    ]
    assert len(ended) > 20
    assert identical([forced[index] for index in ended], [found[index] for index in ended])
    assert not len(LARGE.states)
