"""int8 graphs: close to float32, all in integers, and blind to the neighbours in the batch."""

from collections import Counter
from pathlib import Path
from typing import Literal

import numpy as np
import onnx
import onnxruntime
import pytest
from torch import nn

from export.assemble import Description
from export.graphs import ActivationRange, GraphOptions, quantize_rows, weights_of
from export.quantize import calibrate, choose_range
from service.bundle import Bundle
from service.session import Graphs, OnnxModel
from tests.tiny_bundle import VOCABULARY_SIZE, random_sources
from training.model import Translator

Graph = Literal["encoder", "step"]
GRAPHS: tuple[Graph, ...] = ("encoder", "step")
SOURCES = random_sources(8, seed=3)


def optimized_operators(path: Path, saved: Path) -> Counter[str]:
    """What onnxruntime really runs."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(saved)
    options.log_severity_level = 3
    onnxruntime.InferenceSession(
        str(path), options, disabled_optimizers=["SkipLayerNormFusion", "MatMulAddFusion"]
    )
    return Counter(node.op_type for node in onnx.load(saved).graph.node)


def test_every_product_with_a_weight_is_an_integer_product(
    both: Bundle, network: Translator
) -> None:
    linears = [name for name, module in network.named_modules() if isinstance(module, nn.Linear)]
    # The score of additive attention is a dot product in float32; the tied table is one more.
    expected = [name for name in linears if not name.endswith("score_projection")] + ["embedding"]
    found = [
        node.input[1].removesuffix(".weight")
        for graph in GRAPHS
        for node in onnx.load(both.graph_path("int8", graph)).graph.node
        if node.op_type in ("MatMulIntegerToFloat", "QAttention")
    ]
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("graph", GRAPHS)
def test_no_weight_is_dequantised_at_run_time(both: Bundle, graph: Graph, tmp_path: Path) -> None:
    path = both.graph_path("int8", graph)
    products = Counter(node.op_type for node in onnx.load(path).graph.node)
    run = optimized_operators(path, tmp_path / "optimized.onnx")
    assert run["MatMulIntegerToFloat"] == products["MatMulIntegerToFloat"] > 0
    assert not {"DequantizeLinear", "Gemm", "DynamicQuantizeLinear"} & run.keys()


@pytest.mark.parametrize("graph", GRAPHS)
def test_no_matrix_of_the_size_of_the_vocabulary_is_in_float(both: Bundle, graph: Graph) -> None:
    weights = weights_of(onnx.load(both.graph_path("int8", graph)))
    large = [w for w in weights.values() if w.size > VOCABULARY_SIZE and VOCABULARY_SIZE in w.shape]
    assert large
    assert {weight.dtype for weight in large} <= {np.dtype(np.int8), np.dtype(np.uint8)}


def test_a_row_is_the_same_to_the_last_bit_in_any_company(both: Bundle) -> None:
    graphs = Graphs.load(both, "int8")
    lengths = {len(source) for source in SOURCES}
    alike = [source for source in SOURCES if (len(source) + 7) // 8 == (max(lengths) + 7) // 8]
    together = OnnxModel(graphs, 64)
    together.append(SOURCES, 1)
    tokens = np.full((len(SOURCES), 1), together.start_id)
    positions = np.zeros(len(SOURCES), np.int32)
    all_rows = together.step(tokens, positions, 1, False, full=True).full_log_probs
    assert all_rows is not None and alike
    for source in alike:
        model = OnnxModel(graphs, 1)
        model.append([source], 1)
        row = model.step(tokens[:1], positions[:1], 1, False, full=True).full_log_probs
        assert row is not None
        np.testing.assert_array_equal(row[0], all_rows[SOURCES.index(source)])


def test_int8_predicts_what_float32_predicts(both: Bundle) -> None:
    predictions = []
    for precision in ("fp32", "int8"):
        model = OnnxModel(Graphs.load(both, precision), 64)
        model.append(SOURCES, 1)
        tokens = np.full((len(SOURCES), 1), model.start_id)
        output = model.step(tokens, np.zeros(len(SOURCES), np.int32), 1, False, full=True)
        assert output.full_log_probs is not None
        predictions.append(output.full_log_probs.copy())
    exact, rounded = predictions
    assert np.abs(exact - rounded).mean() < 0.1 * exact.std()


def test_what_was_dequantised_is_quantised_to_the_same_integers() -> None:
    weight = np.random.default_rng(0).standard_normal((30, 20)).astype(np.float32)
    integers, scales = quantize_rows(weight)
    again, same_scales = quantize_rows(integers * scales[:, None])
    np.testing.assert_array_equal(integers, again)
    np.testing.assert_allclose(scales, same_scales, rtol=1e-6)


def test_a_row_of_zeros_stays_one() -> None:
    integers, scales = quantize_rows(np.zeros((2, 4), np.float32))
    assert not integers.any() and scales.all()


@pytest.mark.parametrize("low, high", [(-1.0, 3.0), (0.0, 2.0), (-5.0, 0.0)])
def test_a_range_holds_zero_exactly_and_its_ends(low: float, high: float) -> None:
    activation = ActivationRange(low, high)
    assert 0 <= activation.zero_point <= 255
    lowest = -activation.zero_point * activation.scale
    assert lowest == pytest.approx(low, abs=activation.scale)
    assert lowest + 255 * activation.scale == pytest.approx(high, abs=activation.scale)


def test_a_range_gives_up_an_outlier_for_finer_steps() -> None:
    sample = np.random.default_rng(0).standard_normal(100_000).astype(np.float32)
    kept = choose_range(-4.0, 4.0, sample)
    clipped = choose_range(-4.0, 40.0, sample)
    assert kept.high >= 3.5
    assert clipped.high <= 25


def test_ranges_are_measured_for_every_product_at_every_step(
    network: Translator, description: Description
) -> None:
    options: GraphOptions = description.graph_options
    few = calibrate(network, options, [(SOURCES[0], [3])])
    many = calibrate(network, options, [(SOURCES[0], SOURCES[1])])
    assert few.keys() == many.keys()
    width = {path: activation.high - activation.low for path, activation in many.items()}
    assert all(width.values())
    assert sum(width[path] > few[path].high - few[path].low for path in width) > len(width) / 3
