"""The session: rows that come and go change nobody's numbers, and these are the network's."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from service.bundle import Bundle
from service.decoding import Batch, DecodingOptions, Hypothesis, decode
from service.errors import ConfigError
from service.session import Graphs, OnnxModel
from service.session.placement import OnDevice, OnHost
from tests.tiny_bundle import LIMITS, VOCABULARY_SIZE, random_sources, tiny_network
from training.vocabulary import EOS_ID

MAX_ROWS = 12
SOURCES = random_sources(24)


@pytest.fixture(
    scope="module", params=[OnHost(), OnDevice("cpu", {"float32"})], ids=["host", "device"]
)
def graphs(bundle: Bundle, request: pytest.FixtureRequest) -> Graphs:
    """With rows in the host's memory, and as they are on a device, with the CPU for one."""
    return replace(Graphs.load(bundle, "fp32"), placement=request.param)


def options(beam_size: int) -> DecodingOptions:
    return DecodingOptions(
        beam_size=beam_size, num_hypotheses=beam_size, max_length=70, attention=True
    )


def alone(graphs: Graphs, source: Sequence[int], beam_size: int) -> list[Hypothesis]:
    return decode(OnnxModel(graphs, beam_size), [source], options(beam_size))[0]


def assert_same(these: Sequence[Hypothesis], those: Sequence[Hypothesis]) -> None:
    assert [hypothesis.ids for hypothesis in these] == [hypothesis.ids for hypothesis in those]
    for this, that in zip(these, those, strict=True):
        np.testing.assert_allclose(this.token_log_probs, that.token_log_probs, atol=1e-4)
        assert this.attention is not None and that.attention is not None
        np.testing.assert_allclose(this.attention, that.attention, atol=1e-4)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_sentence_decodes_alone_as_among_others_that_come_and_go(
    graphs: Graphs, beam_size: int
) -> None:
    together = decode(OnnxModel(graphs, MAX_ROWS), SOURCES, options(beam_size), max_rows=MAX_ROWS)
    for source, hypotheses in zip(SOURCES, together, strict=True):
        assert_same(hypotheses, alone(graphs, source, beam_size))


@pytest.mark.parametrize("beam_size", [1, 3])
def test_newcomers_and_leavers_change_nothing_for_those_in_flight(
    graphs: Graphs, beam_size: int
) -> None:
    batch = Batch[int](OnnxModel(graphs, MAX_ROWS), beam_size)
    waiting, results = list(range(len(SOURCES))), dict[int, list[Hypothesis]]()
    while waiting or len(batch):
        if waiting and (len(batch) + 1) * beam_size <= MAX_ROWS:
            joins = waiting.pop()
            batch.join([joins], [SOURCES[joins]], [options(beam_size)])
            if joins % 5 == 0:
                batch.drop([joins])
        results.update(batch.step())
    for index, hypotheses in results.items():
        assert_same(hypotheses, alone(graphs, SOURCES[index], beam_size))
    assert len(results) == len([index for index in range(len(SOURCES)) if index % 5])


def test_scores_are_those_of_the_network(graphs: Graphs) -> None:
    network = tiny_network(graphs.manifest.architecture)
    results = decode(OnnxModel(graphs, MAX_ROWS), SOURCES, options(3), max_rows=MAX_ROWS)
    for source, hypotheses in zip(SOURCES, results, strict=True):
        for hypothesis in hypotheses:
            count = len(hypothesis.token_log_probs)
            labels = torch.tensor([*hypothesis.ids, EOS_ID])[:count]
            fed = torch.tensor([[graphs.manifest.special_ids.decoder_start, *labels.tolist()]])
            lengths = torch.tensor([len(source)])
            with torch.no_grad():
                logits = network(torch.tensor([source]), lengths, fed[:, :count])[0]
            expected = logits.log_softmax(-1)[torch.arange(count), labels]
            np.testing.assert_allclose(hypothesis.token_log_probs, expected, atol=1e-3)


def test_a_sentence_that_cannot_be_encoded_leaves_the_others_alone(graphs: Graphs) -> None:
    batch = Batch[int](OnnxModel(graphs, MAX_ROWS), 1)
    batch.join([0], [SOURCES[0]], [options(1)])
    first = batch.step()
    with pytest.raises(Exception, match="indices element out of data bounds"):
        batch.join([1, 2], [[VOCABULARY_SIZE, EOS_ID], SOURCES[2]], [options(1)] * 2)
    results = dict(first)
    while len(batch):
        results.update(batch.step())
    assert_same(results[0], alone(graphs, SOURCES[0], 1))


def test_the_best_candidates_are_those_of_the_whole_vocabulary(graphs: Graphs) -> None:
    model = OnnxModel(graphs, MAX_ROWS)
    model.append(SOURCES[:4], 2)
    tokens = np.full((4, 2), model.start_id)
    output = model.step(tokens, np.zeros(8, np.int32), 5, attention=False, full=True)
    assert output.full_log_probs is not None and output.attention is None
    np.testing.assert_allclose(np.exp(output.full_log_probs).sum(axis=1), 1, rtol=1e-5)
    best = -np.sort(-output.full_log_probs, axis=1)[:, :5]
    np.testing.assert_array_equal(output.log_probs, best)
    chosen = np.take_along_axis(output.full_log_probs, output.ids, axis=1)
    np.testing.assert_array_equal(chosen, output.log_probs)


def test_more_candidates_than_tokens_are_all_tokens(graphs: Graphs) -> None:
    model = OnnxModel(graphs, MAX_ROWS)
    model.append(SOURCES[:1], 1)
    output = model.step(np.full((1, 1), model.start_id), np.zeros(1, np.int32), 9999, False)
    assert sorted(output.ids[0].tolist()) == list(range(VOCABULARY_SIZE))


def test_more_candidates_of_a_step_leave_the_rows_as_they_were(graphs: Graphs) -> None:
    asking, other = OnnxModel(graphs, MAX_ROWS), OnnxModel(graphs, MAX_ROWS)
    tokens = np.full((4, 2), asking.start_id)
    for model in (asking, other):
        model.append(SOURCES[:4], 2)
    for position in range(3):
        positions = np.full(8, position, np.int32)
        few, wanted = (model.step(tokens, positions, 5, False) for model in (asking, other))
        few_log_probs, few_ids = few.log_probs.copy(), few.ids.copy()
        more = asking.more(9999)
        assert more.ids.shape == (8, VOCABULARY_SIZE)
        np.testing.assert_array_equal(more.log_probs[:, :5], few_log_probs)
        np.testing.assert_array_equal(few_ids, wanted.ids)
        tokens = wanted.ids[:, position].reshape(4, 2).copy()
        rows = np.array([1, 0, 2, 2, 4, 5, 7, 6])
        for model in (asking, other):
            model.reorder(rows)


ASKED: list[dict[str, Any]] = [
    {},
    {"min_length": 9, "coverage_penalty": 0.2},
    {"no_repeat_ngram_size": 2, "repetition_penalty": 1.3},
    {"suppress_tokens": tuple(range(4, VOCABULARY_SIZE - 20))},
    {"prefix": (30, 40, 50)},
    {"prefix": (30, 40, 50), "prefix_bias_beta": 0.3},
    {"prefix": (30, 40, EOS_ID), "max_length": 3},
    {"return_alternatives": True},
]


@pytest.mark.parametrize("beam_size", [1, 3])
def test_sentences_with_options_of_their_own_decode_as_they_do_alone(
    graphs: Graphs, beam_size: int
) -> None:
    mixed = [
        replace(options(beam_size), **ASKED[index % len(ASKED)]) for index in range(len(SOURCES))
    ]
    together = decode(OnnxModel(graphs, MAX_ROWS), SOURCES, mixed, max_rows=MAX_ROWS)
    for source, each, hypotheses in zip(SOURCES, mixed, together, strict=True):
        assert hypotheses
        assert_same(hypotheses, decode(OnnxModel(graphs, beam_size), [source], each)[0])


@pytest.mark.parametrize("beam_size", [1, 3])
def test_rows_on_a_device_become_what_they_do_on_the_host_bit_for_bit(
    bundle: Bundle, beam_size: int
) -> None:
    graphs = Graphs.load(bundle, "fp32")
    host, device = (
        decode(OnnxModel(each, MAX_ROWS), SOURCES, options(beam_size), max_rows=MAX_ROWS)
        for each in (graphs, replace(graphs, placement=OnDevice("cpu", {"float32"})))
    )
    for these, those in zip(sum(host, []), sum(device, []), strict=True):
        assert these.ids == those.ids
        np.testing.assert_array_equal(these.token_log_probs, those.token_log_probs)
        assert these.attention is not None and those.attention is not None
        np.testing.assert_array_equal(these.attention, those.attention)


def test_attention_lies_on_real_source_tokens(graphs: Graphs) -> None:
    model = OnnxModel(graphs, MAX_ROWS)
    model.append(SOURCES[:6], 2)
    tokens = np.full((6, 2), model.start_id)
    attention = model.step(tokens, np.zeros(12, np.int32), 1, attention=True).attention
    assert attention is not None
    for row, heads in enumerate(attention):
        length = len(SOURCES[row // 2])
        np.testing.assert_allclose(heads[:, :length].sum(axis=1), 1, atol=1e-5)
        assert not heads[:, length:].any()


def test_the_longest_sentence_fits(graphs: Graphs) -> None:
    longest = [7] * (LIMITS.max_source_tokens - 1) + [EOS_ID]
    (hypothesis,) = decode(
        OnnxModel(graphs, 1),
        [longest],
        DecodingOptions(max_length=LIMITS.max_target_tokens, max_length_ratio=0),
    )[0]
    assert 0 < len(hypothesis.token_log_probs) <= LIMITS.max_target_tokens


def test_what_cannot_be_loaded_is_refused_with_all_reasons(bundle: Bundle) -> None:
    with pytest.raises(ConfigError) as refusal:
        Graphs.load(bundle, "int8", device="abacus")
    assert [fault.split()[0] for fault in refusal.value.faults] == ["precision", "device"]


def test_a_device_that_is_not_there_never_becomes_the_cpu(bundle: Bundle) -> None:
    with pytest.raises(ConfigError, match="cuda"):
        Graphs.load(bundle, "fp32", device="cuda")
