"""Each compiled kernel as a node of its own, with inputs of a few sentences for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import NodeProto, helper, numpy_helper

from service.session.fusion import DOMAIN
from service.session.kernels import library

Array = NDArray[Any]
Arrays = dict[str, Array]

NUM_SENTENCES, NUM_HEADS = 5, 3
SCALE, ZERO_POINT = np.float32(0.02), np.uint8(120)
QUANTIZER: Arrays = {"scale": np.array(SCALE), "zero_point": np.array([ZERO_POINT])}
SHARED = {
    *("gamma", "beta", "table", "table_scales", "encodings"),
    *("scale", "zero_point", "num_candidates"),
}
"""Inputs that are the same for all sentences."""
LENGTHS = np.array([17, 1, 40, 4, 16], np.int32)
LONG = np.array([129, 7, 600, 64, 90], np.int32)


@dataclass(frozen=True)
class Case:
    """One node, and inputs of NUM_SENTENCES sentences for it."""

    operator: str
    inputs: Arrays
    outputs: Sequence[str]  # "" for one that is left out
    attributes: Mapping[str, Any] = field(default_factory=dict)
    extents: Sequence[int] = ()  # of each sentence, along the axes that are padded
    padded: Mapping[str, int] = field(default_factory=dict)  # those axes, by input

    def run(self, changed: Arrays | None = None, constants: Sequence[str] = ()) -> Arrays:
        """The outputs by name; `constants` are in the graph, and not given."""
        inputs = self.inputs | (changed or {})
        given = {name: array for name, array in inputs.items() if name not in constants}
        node = helper.make_node(
            self.operator, list(inputs), self.outputs, domain=DOMAIN, **self.attributes
        )
        session = session_of([node], given, {name: inputs[name] for name in constants})
        names = [output.name for output in session.get_outputs()]
        return dict(zip(names, session.run(names, given), strict=True))

    def alone(self, index: int) -> Arrays:
        """The inputs of one sentence, without padding."""
        chosen = {}
        for name, array in self.inputs.items():
            if name not in SHARED:
                array = np.split(array, NUM_SENTENCES)[index]
            if name in self.padded:
                array = array.take(range(self.extents[index]), axis=self.padded[name])
            chosen[name] = array
        return chosen


def session_of(
    nodes: Sequence[NodeProto], given: Arrays, constants: Arrays
) -> onnxruntime.InferenceSession:
    graph = helper.make_graph(
        nodes,
        "graph",
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), None)
            for name, array in given.items()
        ],
        [
            helper.make_empty_tensor_value_info(name)
            for node in nodes
            for name in node.output
            if name
        ],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.register_custom_ops_library(str(library()))
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(DOMAIN, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def normal(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def on_source(beam: int = 4, head_size: int = 4) -> Case:
    memory = (NUM_SENTENCES, NUM_HEADS, int(LENGTHS.max()) + 3, head_size)
    inputs = {
        "query": 2 * normal(1, NUM_SENTENCES, beam, NUM_HEADS * head_size),
        "key": normal(2, *memory),
        "value": 2 * normal(3, *memory),
        "lengths": LENGTHS,
    }
    return Case(
        *("CrossAttention", inputs | QUANTIZER, ("context", "weights")),
        {"num_heads": NUM_HEADS},
        *(LENGTHS.tolist(), {"key": 2, "value": 2}),
    )


def on_past(beam: int = 4, head_size: int = 4) -> Case:
    positions = np.repeat(LENGTHS - 1, beam)
    memory = (len(positions), NUM_HEADS, int(LENGTHS.max()) + 3, head_size)
    inputs = {
        "qkv": 2 * normal(4, NUM_SENTENCES, beam, 3 * NUM_HEADS * head_size),
        "past_key": normal(5, *memory),
        "past_value": 2 * normal(6, *memory),
        "positions": positions,
    }
    return Case(
        *("CachedSelfAttention", inputs | QUANTIZER, ("context", "next_key", "next_value")),
        {"num_heads": NUM_HEADS},
        *(LENGTHS.tolist(), {"past_key": 2, "past_value": 2}),
    )


def on_itself(head_size: int = 4, lengths: Array = LENGTHS) -> Case:
    num_places = int(lengths.max()) + 1
    qkv = 2 * normal(7, NUM_SENTENCES, num_places, 3 * NUM_HEADS * head_size)
    return Case(
        *("SelfAttention", {"qkv": qkv, "lengths": lengths} | QUANTIZER, ("context",)),
        {"num_heads": NUM_HEADS},
        *(lengths.tolist(), {"qkv": 1}),
    )


def norm(size: int = 40) -> Case:
    summands = {"a": normal(8, NUM_SENTENCES, 3, size), "b": normal(9, NUM_SENTENCES, 3, size)}
    weights = {"gamma": normal(10, size), "beta": normal(11, size)}
    return Case(
        *("AddNormQuantize", summands | weights | QUANTIZER, ("sum_norm", "quantized")),
        {"epsilon": 1e-5},
    )


def candidates(count: int = 6, num_common: int = 200, num_listed: int = 70, beam: int = 2) -> Case:
    listed, extents = (NUM_SENTENCES, 1, num_listed), [num_listed, 1, 64, 0, 5]
    extents = [min(extent, num_listed) for extent in extents]
    integers = np.random.default_rng(12).integers(-9999, 9999, (NUM_SENTENCES, beam, num_listed))
    padding = np.arange(num_listed) >= np.array(extents)[:, None, None]
    inputs = {
        "common": 3 * normal(13, NUM_SENTENCES * beam, num_common),
        "products": integers.astype(np.int32),
        "scales": np.where(padding, 0, 1e-3 * (1 + normal(14, *listed) ** 2)).astype(np.float32),
        "biases": np.where(padding, -1e9, normal(15, *listed)).astype(np.float32),
        "num_candidates": np.array([count]),
    }
    padded = {"products": 2, "scales": 2, "biases": 2}
    return Case("ListCandidates", inputs, ("log_probs", "places"), {}, extents, padded)


def words(size: int = 40) -> Case:
    """The tokens of whole sentences."""
    random = np.random.default_rng(16)
    num_tokens = int(LENGTHS.max()) + 3
    inputs: Arrays = {
        "table": random.integers(0, 256, (30, size)).astype(np.uint8),
        "table_scales": (1 + random.random((30, 1))).astype(np.float32) / 99,
        "encodings": normal(17, num_tokens, size),
        "tokens": random.integers(0, 30, (NUM_SENTENCES, num_tokens)),
    }
    return Case(
        *("EmbedQuantize", inputs | QUANTIZER, ("hidden", "quantized")),
        extents=LENGTHS.tolist(),
        padded={"tokens": 1},
    )


def words_of_beams(beam: int = 4, size: int = 40) -> Case:
    """The last token of each row, with its place."""
    case = words(size)
    tokens = case.inputs["tokens"][:, :beam]
    inputs = case.inputs | {"tokens": tokens, "places": np.repeat(LENGTHS - 1, beam)}
    return Case(case.operator, inputs, case.outputs)


def packed_memory(head_size: int = 4) -> Case:
    num_places = int(LENGTHS.max()) + 3
    packed = normal(18, NUM_SENTENCES, num_places, 2 * NUM_HEADS * head_size)
    return Case(
        *("SplitHeads", {"packed": packed}, ("keys", "values"), {"num_heads": NUM_HEADS}),
        *(LENGTHS.tolist(), {"packed": 1}),
    )
