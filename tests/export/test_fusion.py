"""Own kernels in the graphs of a bundle: which nodes they take the place of, and that nothing else
changes by it.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import onnx
import onnxruntime
import pytest
from google.protobuf.descriptor import FieldDescriptor
from onnx import helper

from service.bundle import Bundle
from service.decoding import DecodingOptions, decode
from service.session import Graphs, OnnxModel
from service.session.fusion import DOMAIN, fused, model_pb2
from service.session.kernels import MAX_PLACES, library
from service.session.loading import accepted, load_session
from tests.tiny_bundle import random_sources

SOURCES = random_sources(12, seed=5)
Name = Literal["encoder", "step"]
Change = Callable[[onnx.NodeProto], None]


def nodes_of(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            yield from nodes_of(attribute.g)


def kernels_in(graph: bytes) -> Counter[str]:
    nodes = nodes_of(onnx.load_from_string(fused(graph)).graph)
    return Counter(node.op_type for node in nodes if node.domain == DOMAIN)


def graph_of(bundle: Bundle, name: Name, precision: str = "int8") -> bytes:
    return bundle.graph_path(precision, name).read_bytes()


def is_transformer(bundle: Bundle) -> bool:
    return bundle.manifest.architecture == "transformer"


def test_kernels_take_their_places(listed: Bundle) -> None:
    in_step, in_encoder = {"ListCandidates": 1}, dict[str, int]()
    if is_transformer(listed):
        common = {"EmbedQuantize": 1}
        in_step |= common | {"CrossAttention": 2, "CachedSelfAttention": 2, "AddNormQuantize": 6}
        in_encoder = common | {"SelfAttention": 2, "AddNormQuantize": 4, "SplitHeads": 2}
    assert kernels_in(graph_of(listed, "step")) == in_step
    assert kernels_in(graph_of(listed, "encoder")) == in_encoder


@pytest.mark.parametrize("name", ["encoder", "step"])
def test_float_graphs_stay_as_they_are(both: Bundle, name: Name) -> None:
    graph = graph_of(both, name, "fp32")
    assert fused(graph) is graph


def add_input(index: int, name: str) -> Change:
    def change(node: onnx.NodeProto) -> None:
        node.input.extend([""] * (index + 1 - len(node.input)))
        node.input[index] = name

    return change


def set_attribute(**values: int) -> Change:
    def change(node: onnx.NodeProto) -> None:
        node.attribute.extend(helper.make_attribute(name, value) for name, value in values.items())

    return change


def change_axis(axis: int) -> Change:
    def change(node: onnx.NodeProto) -> None:
        del node.attribute[:]
        set_attribute(axis=axis)(node)

    return change


@pytest.mark.parametrize(
    ("op_type", "change", "kernel"),
    [
        ("MultiHeadAttention", add_input(3, "bias"), "CrossAttention"),
        ("MultiHeadAttention", set_attribute(unidirectional=1), "CrossAttention"),
        ("GroupQueryAttention", set_attribute(do_rotary=1), "CachedSelfAttention"),
        ("GroupQueryAttention", add_input(7, "cosines"), "CachedSelfAttention"),
        ("LayerNormalization", set_attribute(stash_type=1), "AddNormQuantize"),
        ("TopK", set_attribute(largest=0), "ListCandidates"),
        ("LogSoftmax", change_axis(0), "ListCandidates"),
        ("GatherBlockQuantized", add_input(3, "zero_points"), "EmbedQuantize"),
        ("Split", set_attribute(num_outputs=2), "SplitHeads"),
    ],
)
def test_what_a_kernel_does_not_do_stays(
    listed: Bundle, op_type: str, change: Change, kernel: str
) -> None:
    if not is_transformer(listed):
        pytest.skip("has no such nodes")
    graph = graph_of(listed, "encoder" if kernel == "SplitHeads" else "step")
    model = onnx.load_from_string(graph)
    changed = [node for node in nodes_of(model.graph) if node.op_type == op_type]
    assert changed
    for node in changed:
        change(node)
    expected = kernels_in(graph)
    del expected[kernel]
    assert kernels_in(model.SerializeToString()) == expected


def test_an_inner_tensor_that_somebody_else_reads_is_kept(listed: Bundle) -> None:
    if not is_transformer(listed):
        pytest.skip("has no such nodes")
    model = onnx.load_from_string(graph_of(listed, "step"))
    [*_, added] = [node for node in model.graph.node if node.op_type == "Add"]
    value = helper.make_tensor_value_info(added.output[0], onnx.TensorProto.FLOAT, ["a", "b", "c"])
    model.graph.output.append(value)
    graph = model.SerializeToString()
    assert kernels_in(graph)["AddNormQuantize"] == 5
    onnx.checker.check_model(onnx.load_from_string(fused(graph)))


def test_what_stays_is_still_given_all_that_it_reads(listed: Bundle) -> None:
    if not is_transformer(listed):
        pytest.skip("has no such nodes")
    model = onnx.load_from_string(graph_of(listed, "step"))
    for node in model.graph.node:
        if node.op_type == "GroupQueryAttention":  # whose result has the shape of the embedded
            set_attribute(local_window_size=5)(node)
    [*_, features] = [node for node in model.graph.node if node.op_type == "LayerNormalization"]
    [reshaped] = [node for node in model.graph.node if features.output[0] in node.input]
    assert reshaped.op_type == "Reshape"
    value = helper.make_tensor_value_info("again", onnx.TensorProto.FLOAT, ["rows", "size"])
    model.graph.output.append(value)
    model.graph.node.append(helper.make_node("Identity", reshaped.output, ["again"]))
    onnx.checker.check_model(onnx.load_from_string(fused(model.SerializeToString())))


def test_more_places_than_the_kernels_take_are_left_to_onnxruntime(listed: Bundle) -> None:
    manifest = listed.manifest
    limits = replace(manifest.limits, max_source_tokens=MAX_PLACES + 1)
    long = replace(listed, manifest=replace(manifest, limits=limits))
    session = Graphs.load(long, "int8").step
    sizes = {"source": MAX_PLACES + 1, "target": 4, "shortlist": 4}
    types = {"float": "float32"}  # all others have numpy's names
    given = {}
    for each in session.get_inputs():
        shape = [size if isinstance(size, int) else sizes.get(size, 1) for size in each.shape]
        kind = each.type.removeprefix("tensor(").removesuffix(")")
        given[each.name] = np.zeros(shape, types.get(kind, kind))
    given |= {"source_lengths": np.array([MAX_PLACES + 1]), "num_candidates": np.array([1])}
    [attention] = session.run(["attention"], given)
    assert attention.shape[-1] == MAX_PLACES + 1


@pytest.mark.parametrize("beam_size", [1, 3])
def test_translations_are_those_of_the_graphs_as_they_were(listed: Bundle, beam_size: int) -> None:
    if accepted(library()) is None:
        pytest.skip("no kernels were built")
    options = DecodingOptions(beam_size=beam_size, max_length=40, attention=True)
    found, expected = (
        decode(OnnxModel(Graphs.load(listed, "int8", own_kernels=own), 48), SOURCES, options)
        for own in (True, False)
    )
    for (one, *_), (other, *_) in zip(found, expected, strict=True):
        assert one.ids == other.ids
        assert one.attention is not None and other.attention is not None
        np.testing.assert_allclose(one.token_log_probs, other.token_log_probs, atol=1e-2)
        np.testing.assert_allclose(one.attention, other.attention, atol=1e-2)


def test_a_library_that_is_none_is_left_out_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "kernels.so"
    path.write_text("no library")
    assert accepted(path) is None
    assert "going on without own kernels" in caplog.text


def test_a_graph_whose_kernels_the_library_lacks_is_loaded_without(
    listed: Bundle, caplog: pytest.LogCaptureFixture
) -> None:
    if not is_transformer(listed) or accepted(library()) is None:
        pytest.skip("has no such kernels")
    path = listed.graph_path("int8", "step")
    [one] = {*Path(onnxruntime.__file__).parent.glob("capi/*providers_shared*")}
    session = load_session(path, "cpu", kernels=one)
    assert "can't have own kernels" in caplog.text
    assert [each.name for each in session.get_inputs()][0] == "tokens"


def test_the_fields_that_are_read_are_those_of_onnx() -> None:
    messages = model_pb2.DESCRIPTOR.message_types_by_name.values()
    for message in messages:
        theirs = getattr(onnx, message.name).DESCRIPTOR.fields_by_name
        for field in message.fields:
            assert described(field) == described(theirs[field.name])


def described(field: FieldDescriptor) -> tuple[int, int, bool]:
    return field.number, field.type, field.is_repeated
