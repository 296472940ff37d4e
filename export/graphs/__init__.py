"""A translator as an encoder graph and a step graph, which hold to docs/design.md.

Each architecture is written down once, in `transformer` and `bahdanau`, against the `Products` of
a precision. float16 is float32 with other types (`half`) and what CUDA does otherwise (`cuda`).
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np
import onnx

from export.graphs.bahdanau import BahdanauGraphs, gru_parameters
from export.graphs.builder import GraphBuilder, weights_of
from export.graphs.cuda import for_cuda
from export.graphs.half import half_precision
from export.graphs.parts import TABLE, GraphOptions, Layers
from export.graphs.products import (
    SCALE,
    ActivationRange,
    FloatProducts,
    IntegerProducts,
    Products,
    quantize_rows,
)
from export.graphs.shortlist import ShortlistLayer, shortlist_memory
from export.graphs.transformer import TransformerGraphs
from training.bahdanau import Bahdanau
from training.model import Translator
from training.transformer import Transformer

__all__ = [
    "SCALE",
    "TABLE",
    "ActivationRange",
    "FloatProducts",
    "GraphOptions",
    "IntegerProducts",
    "Products",
    "ShortlistLayer",
    "encoder_graph",
    "for_cuda",
    "gru_parameters",
    "half_precision",
    "num_attention_heads",
    "num_attention_layers",
    "quantize_rows",
    "shortlist_memory",
    "step_graph",
    "weights_of",
]


class Writer(Protocol):
    """What each architecture provides."""

    def write_encoder(self) -> None: ...
    def write_step(self) -> None: ...


def encoder_graph(model: Translator, products: Products, options: GraphOptions) -> onnx.ModelProto:
    """source_ids (sentence, source), source_lengths (sentence,) -> memory and initial state."""
    graph = GraphBuilder("encoder")
    graph.input("source_ids", np.int64, ["sentence", "source"])
    graph.input("source_lengths", np.int64, ["sentence"])
    _writer(model, Layers(graph, products), options).write_encoder()
    if products.shortlist is not None:
        graph.input("shortlist_ids", np.int64, ["sentence", "shortlist"])
        Layers(graph, products).write_shortlist(model.embedding)
        _declare_shortlist(graph.output, model)
    initial = [spec for spec in model.state_specs if "target" not in spec.axes]
    for spec in (*model.memory_specs, *initial):
        # What leaves the encoder has one row per sentence; beams come later.
        axes = ["sentence" if axis == "sentence * beam" else axis for axis in spec.axes]
        graph.output(spec.name, np.float32, axes)
    return graph.build()


def step_graph(model: Translator, products: Products, options: GraphOptions) -> onnx.ModelProto:
    """tokens (sentence, beam) and what is kept -> candidates, attention, log_probs, next state."""
    graph = GraphBuilder("step")
    graph.input("tokens", np.int64, ["sentence", "beam"])
    graph.input("positions", np.int32, ["rows"])
    graph.input("source_lengths", np.int64, ["sentence"])
    graph.input("num_candidates", np.int64, [1])
    for spec in (*model.memory_specs, *model.state_specs):
        graph.input(spec.name, np.float32, _row_axes(spec.axes))
    if products.shortlist is not None:
        graph.input("whole_vocabulary", np.bool_, [1])
        _declare_shortlist(graph.input, model)
    _writer(model, Layers(graph, products), options).write_step()
    heads = num_attention_heads(model)
    graph.output("candidate_log_probs", np.float32, ["rows", "candidates"])
    graph.output("candidate_ids", np.int64, ["rows", "candidates"])
    graph.output("attention", np.float32, ["rows", heads, "source"])
    graph.output("log_probs", np.float32, ["rows", model.embedding.weight.size(0)])
    for spec in model.state_specs:
        graph.output(f"next_{spec.name}", np.float32, _row_axes(spec.axes))
    return graph.build()


def num_attention_heads(model: Translator) -> int:
    """Heads of the one layer whose attention a step returns."""
    return model.config.num_heads if isinstance(model, Transformer) else 1


def num_attention_layers(model: Translator) -> int:
    """Layers whose attention a step could return, one of which `GraphOptions` names."""
    return model.config.decoder_layers if isinstance(model, Transformer) else 1


def _writer(model: Translator, layers: Layers, options: GraphOptions) -> Writer:
    if isinstance(model, Transformer):
        return TransformerGraphs(model, layers, options)
    if isinstance(model, Bahdanau):
        if not model.config.attention:
            raise ValueError("a network without attention is for comparison only; export another")
        return BahdanauGraphs(model, layers, options)
    raise TypeError(f"no graphs are known for a {type(model).__name__}")


def _declare_shortlist(declare: Callable[..., object], model: Translator) -> None:
    for spec in shortlist_memory(model.embedding.weight.size(1)):
        declare(spec.name, np.dtype(spec.dtype).type, spec.axes)


def _row_axes(axes: tuple[str | int, ...]) -> list[str | int]:
    return ["rows" if axis == "sentence * beam" else axis for axis in axes]
