"""Graphs against their network: the same values whatever the batch, the beams and the padding."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from export.graphs import FloatProducts, GraphOptions, step_graph
from export.verify.values import value_error
from service.bundle import Bundle
from service.decoding import DecodingOptions, decode
from service.session import Graphs, OnnxModel
from tests.tiny_bundle import VOCABULARY_SIZE, random_sources
from training.bahdanau import BahdanauConfig
from training.data import pad
from training.model import Translator
from training.step_model import TorchStepModel

Arrays = dict[str, NDArray[Any]]
SOURCES = random_sources(12, seed=5)


@pytest.fixture(scope="module")
def graphs(both: Bundle) -> Graphs:
    return Graphs.load(both, "fp32")


@pytest.fixture
def returned_heads(both: Bundle) -> slice:
    return slice(0, both.manifest.attention.num_heads)


def encode(graphs: Graphs, sources: list[list[int]]) -> Arrays:
    lengths = np.array([len(source) for source in sources])
    names = [output.name for output in graphs.encoder.get_outputs()]
    feeds = {"source_ids": pad(sources).numpy(), "source_lengths": lengths}
    return dict(zip(names, graphs.encoder.run(names, feeds), strict=True))


def first_step(graphs: Graphs, sources: list[list[int]], tokens: NDArray[np.int64]) -> Arrays:
    """The outputs of a step at position 0, tokens (sentences, beams)."""
    kept = encode(graphs, sources)
    rows = tokens.size
    for spec in graphs.manifest.state:
        if "target" in spec.axes:
            sizes = {"sentence * beam": rows, "target": 4}
            shape = [sizes[axis] if isinstance(axis, str) else axis for axis in spec.axes]
            kept[spec.name] = np.zeros(shape, np.float32)
        else:
            kept[spec.name] = kept[spec.name].repeat(tokens.shape[1], axis=0)
    feeds = {
        "tokens": tokens,
        "positions": np.zeros(rows, np.int32),
        "source_lengths": np.array([len(source) for source in sources]),
        "num_candidates": np.array([5]),
    }
    names = [output.name for output in graphs.step.get_outputs()]
    return dict(zip(names, graphs.step.run(names, kept | feeds), strict=True))


def test_every_value_is_that_of_the_network(
    network: Translator, graphs: Graphs, returned_heads: slice
) -> None:
    assert value_error(network, graphs, returned_heads) < 1e-4


def test_one_changed_weight_is_noticed(
    network: Translator, graphs: Graphs, returned_heads: slice
) -> None:
    for name, _ in list(network.named_parameters())[::4]:
        changed = copy.deepcopy(network)
        parameter = changed.get_parameter(name)
        with torch.no_grad():
            parameter.view(-1)[-1] += 1.0
        if name != "embedding.weight":  # its last row may be a word that is not fed
            assert value_error(changed, graphs, returned_heads) > 1e-4, name


@pytest.mark.parametrize("beam_size", [1, 4])
def test_translations_and_their_attention_are_those_of_the_network(
    network: Translator, graphs: Graphs, returned_heads: slice, beam_size: int
) -> None:
    options = DecodingOptions(beam_size=beam_size, max_length=40, attention=True)
    expected = decode(TorchStepModel(network, returned_heads), SOURCES, options)
    found = decode(OnnxModel(graphs, 64), SOURCES, options)
    for (theirs, *_), (ours, *_) in zip(expected, found, strict=True):
        assert theirs.ids == ours.ids
        assert theirs.attention is not None and ours.attention is not None
        np.testing.assert_allclose(ours.attention, theirs.attention, atol=1e-4)


def test_padding_changes_nothing(graphs: Graphs) -> None:
    together = encode(graphs, SOURCES)
    for row, source in enumerate(SOURCES):
        for name, values in encode(graphs, [source]).items():
            axes = next(spec.axes for spec in _kept(graphs) if spec.name == name)
            real = together[name][row]
            if "source" in axes:
                real = real.take(np.arange(len(source)), axis=axes.index("source") - 1)
            np.testing.assert_allclose(real, values[0], atol=1e-5, err_msg=name)


def test_beams_on_one_memory_are_sentences_of_their_own(graphs: Graphs) -> None:
    tokens = np.random.default_rng(0).integers(4, VOCABULARY_SIZE, (3, 4))
    beams = first_step(graphs, SOURCES[:3], tokens)
    replicated = [source for source in SOURCES[:3] for _ in range(4)]
    sentences = first_step(graphs, replicated, tokens.reshape(-1, 1))
    assert beams.keys() == sentences.keys()
    for name, values in beams.items():
        np.testing.assert_allclose(values, sentences[name], atol=1e-5, err_msg=name)


def test_a_network_without_attention_is_refused() -> None:
    config = BahdanauConfig(VOCABULARY_SIZE, attention=False)
    with pytest.raises(ValueError, match="without attention"):
        step_graph(config.build(), FloatProducts(), GraphOptions(0, 8, 8))


def _kept(graphs: Graphs) -> tuple[Any, ...]:
    return graphs.manifest.memory + graphs.manifest.state
