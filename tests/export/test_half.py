"""float16 graphs, on the CPU: their network's values within halves, whatever shares a batch."""

import numpy as np
import onnx
import pytest
import torch

from export.graphs import weights_of
from export.graphs.half import RESULTS, WIDE
from export.graphs.types import FLOAT, HALF, element_types
from export.rebuild import GRAPHS, load_graph, network_of
from export.verify import gaps
from export.verify.values import value_error
from service.bundle import Bundle
from service.decoding import DecodingOptions, decode
from service.session import Graphs, OnnxModel, prove
from tests.tiny_bundle import random_sources
from training.model import Translator
from training.step_model import TorchStepModel

SOURCES = random_sources(16, seed=5)
TOLERANCE = 0.03  # of numbers up to ten, of which float16 keeps ten bits
TIE = 0.05


@pytest.fixture(scope="module")
def graphs(halved: Bundle) -> Graphs:
    return Graphs.load(halved, "fp16")


def models(bundle: Bundle) -> list[onnx.ModelProto]:
    return [load_graph(bundle, "fp16", graph) for graph in GRAPHS]


def test_every_value_is_that_of_the_network_within_halves(
    network: Translator, graphs: Graphs
) -> None:
    heads = slice(0, graphs.manifest.attention.num_heads)
    assert 1e-5 < value_error(network, graphs, heads) < TOLERANCE


@pytest.mark.parametrize("beam_size", [1, 4])
def test_translations_are_those_of_the_network_but_for_ties(
    network: Translator, graphs: Graphs, beam_size: int
) -> None:
    options = DecodingOptions(beam_size=beam_size, max_length=30)
    reference = TorchStepModel(network)
    expected = [best.ids for best, *_ in decode(reference, SOURCES, options)]
    found = [best.ids for best, *_ in decode(OnnxModel(graphs, 64), SOURCES, options)]
    differing = [i for i, (a, b) in enumerate(zip(expected, found, strict=True)) if a != b]
    assert len(differing) <= len(SOURCES) // 8
    if beam_size == 1:  # a beam goes apart at a tie that can't be seen in the best one
        sources, these, those = ([of[i] for i in differing] for of in (SOURCES, expected, found))
        assert all(gap < TIE for gap in gaps(reference, sources, these, those))


def test_a_sentence_is_translated_the_same_alone_in_a_batch_and_in_flight(graphs: Graphs) -> None:
    options = DecodingOptions(max_length=30)
    together, alone, in_flight = (
        [best.ids for best, *_ in decode(OnnxModel(graphs, rows), SOURCES, options, max_rows=rows)]
        for rows in (64, 1, 5)
    )
    assert together == alone == in_flight


def test_memory_and_state_are_halves_and_results_are_not(halved: Bundle, graphs: Graphs) -> None:
    prove(graphs)
    assert {spec.dtype for spec in halved.manifest.memory + halved.manifest.state} == {"float32"}
    assert {spec.dtype for spec in graphs.manifest.memory + graphs.manifest.state} == {"float16"}
    _, step = models(halved)
    types = element_types(step)
    assert {types[name] for name in RESULTS} == {FLOAT}
    assert {types[f"next_{spec.name}"] for spec in graphs.manifest.state} == {HALF}


def test_what_must_not_lose_precision_is_computed_in_float32(halved: Bundle) -> None:
    for model in models(halved):
        types = element_types(model)
        for node in model.graph.node:
            if node.op_type in WIDE:
                assert {types[name] for name in (*node.input, *node.output)} == {FLOAT}, node.name


def test_every_weight_of_a_product_is_finite_and_half_as_long(halved: Bundle) -> None:
    for model in models(halved):
        weights = weights_of(model)
        assert all(np.isfinite(values).all() for values in weights.values())
        products = [n for n in model.graph.node if n.op_type in ("MatMul", "FusedMatMul", "GRU")]
        assert products
        used = {name for node in products for name in node.input if name in weights}
        assert {weights[name].dtype.name for name in used} == {"float16"}


def test_a_network_comes_back_from_its_halves(halved: Bundle, network: Translator) -> None:
    rebuilt = network_of(halved).state_dict()
    for name, parameter in network.state_dict().items():
        torch.testing.assert_close(rebuilt[name], parameter, rtol=1e-3, atol=1e-6)


def test_declared_outputs_are_of_the_types_that_are_computed(halved: Bundle) -> None:
    for model in models(halved):
        types = element_types(model)
        for output in model.graph.output:
            is_half = output.type.tensor_type.elem_type == onnx.TensorProto.FLOAT16
            assert (types[output.name] == HALF) == is_half
