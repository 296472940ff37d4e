"""The output layer over the words that a sentence chooses from, in 8-bit integers.

    common words     one product of all rows with a constant weight, prepacked by the runtime
    own words        the sentence's own columns of the weight, which the encoder graph gathers once
                     and which stay in memory: a product of its rows with these alone

No row meets a word of its neighbours. onnxruntime multiplies a single row by a matrix that is not
packed with a kernel of its own, which knows no zero point; so that of the activations is taken out
of the product and goes, with the mask of padding, into a bias of every word:

    scale * (q - zero) @ w  =  scale * q @ w  -  scale * zero * sum(w)
"""

from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from export.graphs.builder import CONTRIB, Array, GraphBuilder
from export.graphs.products import MASKED, ActivationRange, Linear, quantize_rows
from service.bundle import TensorSpec

IDS = "shortlist_ids"
WEIGHTS, SCALES, BIASES = "shortlist_weights", "shortlist_scales", "shortlist_biases"


def shortlist_memory(size: int) -> tuple[TensorSpec, ...]:
    """What is kept of each sentence's list, for features of `size`."""
    return (
        TensorSpec(WEIGHTS, ("sentence", size, "shortlist"), "int8"),
        TensorSpec(SCALES, ("sentence", 1, "shortlist")),
        TensorSpec(BIASES, ("sentence", 1, "shortlist"), padding=MASKED),
    )


@dataclass(frozen=True, slots=True, eq=False)
class ShortlistLayer:
    """Writes the layer; `common` (C,) are the ids of the common words, ascending."""

    common: Array
    activation: ActivationRange

    def write_memory(self, graph: GraphBuilder, table: Linear) -> None:
        """shortlist_ids (sentence, shortlist) -> the list's columns; padding has the first id
        that is no word.
        """
        rows, row_scales = quantize_rows(table.weight)
        scales = row_scales * np.float32(self.activation.scale)
        biases = -scales * np.float32(self.activation.zero_point) * rows.sum(axis=1, dtype=np.int32)
        padded = graph.constant("shortlist.rows", np.pad(rows, ((0, 1), (0, 0))))
        graph.op("Transpose", graph.op("Gather", padded, IDS), name=WEIGHTS, perm=[0, 2, 1])
        for name, values, padding in ((SCALES, scales, 0.0), (BIASES, biases, MASKED)):
            kept = graph.constant(name + ".words", np.append(values, padding).astype(np.float32))
            graph.op("Unsqueeze", graph.op("Gather", kept, IDS), graph.ints(1), name=name)

    def write_logits(
        self, graph: GraphBuilder, table: Linear, quantized: tuple[str, str, str]
    ) -> str:
        """Integers (rows, size), their scale and zero point -> logits (rows, C + shortlist)."""
        common = self._common_logits(graph, table, quantized)
        return graph.op("Concat", common, self._own_logits(graph, table, quantized[0]), axis=1)

    def _common_logits(
        self, graph: GraphBuilder, table: Linear, quantized: tuple[str, str, str]
    ) -> str:
        rows, row_scales = quantize_rows(table.weight)
        features, scale, zero_point = quantized
        weight = graph.constant("shortlist.common", rows[self.common].T)
        weight_scale = graph.constant("shortlist.common.scale", row_scales[self.common])
        return graph.op(
            "MatMulIntegerToFloat",
            *(features, weight, scale, weight_scale, zero_point),
            domain=CONTRIB,
        )

    def _own_logits(self, graph: GraphBuilder, table: Linear, features: str) -> str:
        size = graph.ints(table.weight.shape[1])
        shape = graph.op("Concat", graph.op("Shape", "tokens"), size, axis=0)
        by_sentence = graph.op("Reshape", features, shape)
        products = graph.op("MatMulInteger", by_sentence, WEIGHTS)
        scaled = graph.op("Mul", graph.op("Cast", products, to=TensorProto.FLOAT), SCALES)
        return graph.op("Flatten", graph.op("Add", scaled, BIASES), axis=2)
