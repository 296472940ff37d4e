"""Sentences in flight: neighbours change nothing, and the model's rows follow."""

import contextlib
import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.decoding import (
    Batch,
    DecodingOptions,
    Hypothesis,
    LengthForm,
    StepOutput,
    Stopping,
    decode,
    score,
)
from service.decoding.filters import Filters
from service.errors import InvalidArgument
from tests.toys import ToyModel, alone, identical, random_sources

EOS = ToyModel.eos_id
LARGE = ToyModel(20, seed=2, eos_bias=1.0)


# What a row may ask for that another one doesn't; with two, few tokens are left to say.
ASKED: list[dict[str, Any]] = [
    {},
    {},
    {"length_form": LengthForm.WU, "coverage_penalty": 0.3},
    {"min_length": 6, "max_length": 12},
    {"min_length_ratio": 0.8},
    {"repetition_penalty": 1.5},
    {"no_repeat_ngram_size": 1},
    {"no_repeat_ngram_size": 2, "suppress_tokens": (4, 9)},
    {"suppress_tokens": tuple(range(2, 19))},
    {"suppress_sequences": ((3, 4), (5,), (6, 7, 8))},
    {"prefix": (3, 7), "max_length": 12},
    {"prefix": (3, 7, 0), "max_length": 3},
    {"prefix": (3, 7, 8), "prefix_bias_beta": 0.5, "max_length": 12},
    {"return_alternatives": True},
    {"sampling_temperature": 1.5, "sampling_top_k": 6, "sampling_seed": 3},
]


def mixed_options(num: int, beam_size: int, seed: int) -> list[DecodingOptions]:
    rng = np.random.default_rng(seed)
    mixed: list[DecodingOptions] = []
    while len(mixed) < num:
        asked: dict[str, Any] = {
            "beam_size": beam_size,
            "num_hypotheses": int(rng.integers(1, beam_size + 1)),
            "length_penalty": float(rng.choice([0.0, 0.6, 1.0])),
            "max_length": int(rng.integers(1, 20)),
            "stopping": Stopping(rng.choice([rule.value for rule in Stopping])),
            "attention": bool(rng.integers(2)),
            "attention_heads": bool(rng.integers(2)),
        }
        for which in rng.integers(len(ASKED), size=2).tolist():
            asked |= ASKED[which]
        if asked.get("return_alternatives"):
            asked["num_hypotheses"] = beam_size
        with contextlib.suppress(InvalidArgument):  # some contradict each other
            mixed.append(DecodingOptions(**asked))
    return mixed


# What happens before each step: how many join, and who is dropped.
PLANS = st.lists(st.tuples(st.integers(0, 5), st.sets(st.integers(0, 11), max_size=2)), max_size=25)


@settings(max_examples=80, deadline=None)
@given(PLANS, st.sampled_from([1, 2, 4]), st.integers(0, 1000))
def test_sentences_in_flight_come_out_as_they_do_alone(
    plan: list[tuple[int, set[int]]], beam_size: int, seed: int
) -> None:
    sources = random_sources(12, seed)
    options = mixed_options(12, beam_size, seed)
    toy = ToyModel(20, seed=2, eos_bias=1.0)
    batch = Batch[int](toy, beam_size)
    waiting, dropped = list(range(12)), set[int]()
    results: dict[int, list[Hypothesis]] = {}
    for num, leaving in itertools.chain(plan, itertools.repeat((12, set[int]()))):
        joining = [waiting.pop() for _ in range(min(num, len(waiting)))]
        batch.join(joining, [sources[i] for i in joining], [options[i] for i in joining])
        dropped |= leaving - set(waiting) - results.keys()
        batch.drop(leaving)
        assert len(batch) == len(toy.source_lengths)
        results |= dict(batch.step())
        if not waiting and not len(batch):
            break
    assert not len(toy.states)
    assert results.keys() == set(range(12)) - dropped
    for index, hypotheses in results.items():
        assert identical(hypotheses, alone(LARGE, sources[index], options[index]))


def test_results_keep_the_order_of_the_sources_for_any_number_of_rows() -> None:
    sources = random_sources(25, seed=11)
    options = [
        option
        for beam_size in (1, 3, 2, 1, 4)
        for option in mixed_options(5, beam_size, seed=beam_size)
    ]
    expected = [alone(LARGE, *pair) for pair in zip(sources, options, strict=True)]
    for max_rows in (1, 7, 64):
        found = decode(LARGE, sources, options, max_rows=max_rows)
        assert all(itertools.starmap(identical, zip(found, expected, strict=True)))


def test_nothing_to_decode_gives_nothing() -> None:
    assert decode(LARGE, [], DecodingOptions()) == []
    assert score(LARGE, [], []) == []
    assert Batch[int](LARGE, 2).step() == []


class Poisoned(ToyModel):
    """Predicts NaN for sources of one token."""

    def step(self, *args: object, **options: object) -> StepOutput:
        output = super().step(*args, **options)  # type: ignore[arg-type]
        bad = np.repeat(self.source_lengths == 1, self._beam_size)
        log_probs = np.where(bad[:, None], np.float32("nan"), output.log_probs)
        return replace(output, log_probs=log_probs)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_sentence_whose_predictions_are_nan_gets_nothing_and_harms_nobody(
    beam_size: int,
) -> None:
    toy = Poisoned(20, seed=2, eos_bias=1.0)
    options = DecodingOptions(beam_size=beam_size)
    poisoned, *others = decode(toy, [[EOS], [5, 6, EOS], [7, EOS]], options)
    assert poisoned == []
    for source, found in zip([[5, 6, EOS], [7, EOS]], others, strict=True):
        assert identical(found, alone(LARGE, source, options))


class Refusing(ToyModel):
    """Can't encode long sources."""

    def append(
        self,
        sources: Sequence[Sequence[int]],
        beam_size: int,
        shortlist: Sequence[bool] | None = None,
    ) -> None:
        if any(len(source) > 5 for source in sources):
            raise MemoryError
        super().append(sources, beam_size, shortlist)


def test_newcomers_that_cannot_be_encoded_leave_the_batch_as_it_was() -> None:
    batch = Batch[str](Refusing(20, seed=2, eos_bias=1.0), 2)
    options = DecodingOptions(beam_size=2)
    batch.join(["short"], [[3, EOS]], [options])
    batch.step()
    with pytest.raises(MemoryError):
        batch.join(["long"], [[3] * 9 + [EOS]], [options])
    results: dict[str, list[Hypothesis]] = {}
    while len(batch):
        results |= dict(batch.step())
    assert results.keys() == {"short"}
    assert identical(results["short"], alone(LARGE, [3, EOS], options))


def test_after_newcomers_that_cannot_be_encoded_others_join_as_if_nobody_had_come() -> None:
    batch = Batch[str](Refusing(20, seed=2, eos_bias=-2.0), 2)
    options = DecodingOptions(beam_size=2, max_length=30)
    batch.join(["first"], [[3, EOS]], [options])
    batch.step()
    with pytest.raises(MemoryError):
        batch.join("abcdefgh", [[3] * 9 + [EOS]] * 8, [options] * 8)
    batch.step()
    batch.join(["second"], [[4, EOS]], [options])
    results: dict[str, list[Hypothesis]] = {}
    while len(batch):
        results |= dict(batch.step())
    toy = ToyModel(20, seed=2, eos_bias=-2.0)
    assert identical(results["first"], alone(toy, [3, EOS], options))
    assert identical(results["second"], alone(toy, [4, EOS], options))


def test_what_a_newcomer_without_memory_asked_for_is_not_done_to_the_next_in_its_place() -> None:
    filters = Filters(EOS, beam_size=1)
    beyond_memory = DecodingOptions(
        max_length=2**50, max_length_ratio=0, suppress_tokens=(5,), sampling_temperature=1.0
    )
    with pytest.raises(MemoryError):
        filters.join(0, beyond_memory, 3)
    filters.join(0, DecodingOptions(repetition_penalty=1.5), 3)
    filters.join(1, DecodingOptions(suppress_tokens=(6,)), 3)
    slots, positions, everyone = np.arange(2), np.zeros(2, np.int32), np.ones(2, np.bool_)
    plan = filters.plan(slots, positions, everyone, ~everyone)
    log_probs = np.log(np.array([[0.5, 0.2, 0.1]] * 2, np.float32))
    output = StepOutput(log_probs, np.array([[5, 6, 7]] * 2))
    assert filters.apply(plan, output, lambda _: output).ids[:, 0].tolist() == [5, 5]


def test_newcomers_without_memory_for_their_beams_leave_batch_and_model_as_they_were() -> None:
    toy = ToyModel(20, seed=2, eos_bias=1.0)
    batch = Batch[str](toy, 2)
    batch.join(["short"], [[3, EOS]], [DecodingOptions(beam_size=2)])
    beyond_memory = DecodingOptions(beam_size=2, max_length=2**50, max_length_ratio=0)
    with pytest.raises(MemoryError):
        batch.join(["long"], [[4, EOS]], [beyond_memory])
    assert len(batch) == len(toy.source_lengths) == 1
    results: dict[str, list[Hypothesis]] = {}
    while len(batch):
        results |= dict(batch.step())
    assert identical(results["short"], alone(LARGE, [3, EOS], DecodingOptions(beam_size=2)))


def test_greedy_rows_move_only_when_a_sentence_leaves_and_only_the_last_ones() -> None:
    toy = ToyModel(20, eos_bias=-100.0)
    batch = Batch[int](toy, 1)
    limits = [9, 3, 9, 9, 9]
    options = [DecodingOptions(max_length=limit) for limit in limits]
    batch.join(range(5), [[2, EOS]] * 5, options)
    batch.step()
    batch.step()
    assert toy.reorders == []
    assert [key for key, _ in batch.step()] == [1]
    assert [rows.tolist() for rows in toy.reorders] == [[0, 4, 2, 3]]


def test_dropping_moves_the_beams_of_the_last_sentences_into_the_holes() -> None:
    toy = ToyModel(20)
    batch = Batch[str](toy, 2)
    options = [DecodingOptions(beam_size=2)] * 4
    batch.join("abcd", [[2, EOS]] * 4, options)
    batch.drop(["a", "c", "nobody"])
    assert [rows.tolist() for rows in toy.reorders] == [[6, 7, 2, 3]]
    batch.drop(["a"])
    assert len(toy.reorders) == 1
