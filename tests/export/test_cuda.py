"""Readiness for CUDA, told on any machine: kernels, placement, and what is written for it."""

import tomllib
from pathlib import Path
from typing import Literal

import numpy as np
import onnx
import pytest

from export.assemble import Description, manifest_for
from export.cuda import Kernel, faults, known_version, place
from export.graphs import FloatProducts, encoder_graph, for_cuda, step_graph
from export.graphs.builder import GraphBuilder
from export.rebuild import GRAPHS, load_graph, rebuild
from export.verify.values import value_error
from service.bundle import Bundle, read_bundle, write_bundle
from service.session import Graphs
from tests.corpus import ROOT
from training.model import Translator


def test_the_kernels_are_those_of_the_release_that_is_installed_for_a_gpu() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    [pinned] = project["optional-dependencies"]["gpu"]
    name, version = pinned.split("==")
    assert known_version() == f"{name.split('[')[0]} {version}"


@pytest.mark.parametrize("graph", GRAPHS)
def test_float16_graphs_run_on_the_device_as_a_whole(
    halved: Bundle, graph: Literal["encoder", "step"]
) -> None:
    model = load_graph(halved, "fp16", graph)
    assert faults(model) == []
    placement = place(model)
    operators = {node.name: node.op_type for node in model.graph.node}
    assert {operators[name] for name in placement.of_shapes} <= {"Cast", "Concat", "Min"}
    assert len(placement.on_device) > 5 * len(placement.of_shapes)


def test_what_has_no_kernel_is_told_with_its_version_and_types(
    network: Translator, description: Description
) -> None:
    model = step_graph(network, FloatProducts(), description.graph_options)
    is_transformer = network.config.architecture == "transformer"
    told = [fault for fault in faults(model) if "no CUDA kernel" in fault]
    assert len(told) == (2 if is_transformer else 0)
    assert all("GroupQueryAttention-1 of float, float, float, int32" in fault for fault in told)


def test_a_kernel_is_for_the_versions_that_were_known_when_it_was_written() -> None:
    closed, latest = Kernel(13, 17, {"T": ["float"]}), Kernel(18, None, {"T": ["float"]})
    types = {"T": "tensor(float)"}
    assert closed.takes(15, types) and latest.takes(18, types)
    assert not closed.takes(18, types) and not latest.takes(19, types)
    assert not latest.takes(18, {"T": "tensor(float16)"})


def test_a_graph_that_is_written_for_cuda_computes_the_same(
    network: Translator, vocabulary: bytes, description: Description, tmp_path: Path
) -> None:
    products, options = FloatProducts(), description.graph_options
    files = {
        "fp32/encoder.onnx": for_cuda(encoder_graph(network, products, options)),
        "fp32/step.onnx": for_cuda(step_graph(network, products, options)),
    }
    written = {name: graph.SerializeToString() for name, graph in files.items()}
    manifest = manifest_for(network, description, ["fp32"], {})
    bundle = write_bundle(tmp_path / "cuda", manifest, written | {"source.model": vocabulary})
    heads = slice(0, manifest.attention.num_heads)
    assert value_error(network, Graphs.load(bundle, "fp32"), heads) < 1e-4


@pytest.mark.parametrize("bound", ["constant", "shape"])
def test_a_number_that_is_computed_on_the_device_is_copied_to_where_it_is_read(bound: str) -> None:
    model = best_of(bound)
    copied = ("bounded",) if bound == "constant" else ()
    assert place(model).copies == copied
    assert len(place(model).of_shapes) == (0 if copied else 1)


def best_of(bound: str) -> onnx.ModelProto:
    """The best `count` of a row's values, or all there are."""
    graph = GraphBuilder("best")
    graph.input("values", np.float32, ["rows", "columns"])
    graph.input("count", np.int64, [1])
    columns = graph.ints(7) if bound == "constant" else graph.op("Shape", "values", start=1)
    k = graph.op("Min", "count", columns, name="bounded")
    graph.ops("TopK", "values", k, names=("best", "places"), axis=-1)
    graph.output("best", np.float32, ["rows", "k"])
    return graph.build()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["transformer-en-fr", "transformer-fr-en", "bahdanau-en-fr"])
def test_the_bundles_that_are_shipped_would_run_on_the_device_as_a_whole(
    name: str, tmp_path: Path
) -> None:
    halved = rebuild(read_bundle(ROOT / "models" / name), tmp_path / name, ["fp16"])
    for graph in GRAPHS:
        assert faults(load_graph(halved, "fp16", graph)) == []
