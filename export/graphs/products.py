"""How a graph multiplies by a weight and looks up an embedding: in float32, or in 8-bit integers.

An architecture is written down once, against `Products`; its precision is a choice of products.

int8 here is *static*: the activations of a product have one scale and zero point, fixed in the
graph, so that a sentence never depends on its neighbours in the batch; weights have one scale per
output. A product is one QuantizeLinear (shared by the products of one input) and one
MatMulIntegerToFloat with its bias: no pattern that an optimiser must find again, and never a
weight that is dequantised at run time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from export.graphs.builder import CONTRIB, Array, GraphBuilder

SCALE = ".scale"
LOOKUP = ".lookup"


@dataclass(frozen=True, slots=True)
class ActivationRange:
    """The values that a product's input takes, `low` <= 0 <= `high`."""

    low: float
    high: float

    @property
    def scale(self) -> float:
        """Width of one of the 255 steps."""
        return max(self.high - self.low, 1e-6) / 255

    @property
    def zero_point(self) -> int:
        """The integer that stands for 0."""
        return round(-self.low / self.scale)


class Products(Protocol):
    """The operations whose cost or storage depends on the precision."""

    def linear(
        self, graph: GraphBuilder, path: str, weight: Array, bias: Array | None, tensor: str
    ) -> str:
        """tensor (..., in) -> (..., out) by weight (out, in), the torch parameter `path.weight`."""

    def relu(self, graph: GraphBuilder, tensor: str) -> str:
        """A rectified tensor that goes into a product and nowhere else."""

    def lookup(self, graph: GraphBuilder, path: str, weight: Array, factor: float, ids: str) -> str:
        """factor * weight[ids] of the torch parameter `path.weight` (rows, size)."""


class FloatProducts:
    """Plain float32."""

    def __init__(self) -> None:
        self.inputs: dict[str, str] = {}
        """The input tensor of each product, by path: what has to be measured for int8."""

    def linear(
        self, graph: GraphBuilder, path: str, weight: Array, bias: Array | None, tensor: str
    ) -> str:
        self.inputs[path] = tensor
        output = graph.op("MatMul", tensor, graph.constant(f"{path}.weight", weight.T))
        if bias is None:
            return output
        return graph.op("Add", output, graph.constant(f"{path}.bias", bias))

    def relu(self, graph: GraphBuilder, tensor: str) -> str:
        return graph.op("Relu", tensor)

    def lookup(self, graph: GraphBuilder, path: str, weight: Array, factor: float, ids: str) -> str:
        table = graph.constant(path + LOOKUP, weight * np.float32(factor))
        return graph.op("Gather", table, ids)


class IntegerProducts:
    """uint8 activations by int8 weights, for the CPU."""

    def __init__(self, ranges: Mapping[str, ActivationRange]) -> None:
        self._ranges = ranges
        self._quantized: dict[tuple[str, ActivationRange], tuple[str, str, str]] = {}

    def linear(
        self, graph: GraphBuilder, path: str, weight: Array, bias: Array | None, tensor: str
    ) -> str:
        quantized, scale, zero_point = self._quantize(graph, path, tensor)
        rows, row_scales = quantize_rows(weight)
        return graph.op(
            "MatMulIntegerToFloat",
            quantized,
            graph.constant(f"{path}.weight", rows.T),
            scale,
            graph.constant(f"{path}.weight{SCALE}", row_scales),
            zero_point,
            "",
            "" if bias is None else graph.constant(f"{path}.bias", bias),
            domain=CONTRIB,
        )

    def relu(self, graph: GraphBuilder, tensor: str) -> str:
        # A rectified range starts at 0, so quantising it clips everything below: that is the ReLU.
        return tensor

    def lookup(self, graph: GraphBuilder, path: str, weight: Array, factor: float, ids: str) -> str:
        rows, row_scales = quantize_rows(weight)
        table = graph.constant(path + LOOKUP, (rows.astype(np.int16) + 128).astype(np.uint8))
        scales = row_scales[:, None] * np.float32(factor)
        # One block holds a whole row, and so one scale; the operator wants a power of two.
        block = max(16, 1 << (weight.shape[1] - 1).bit_length())
        return graph.op(
            "GatherBlockQuantized",
            table,
            ids,
            graph.constant(path + LOOKUP + SCALE, scales),
            domain=CONTRIB,
            bits=8,
            block_size=block,
            gather_axis=0,
            quantize_axis=1,
        )

    def _quantize(self, graph: GraphBuilder, path: str, tensor: str) -> tuple[str, str, str]:
        activation = self._ranges[path]
        key = (tensor, activation)
        if key not in self._quantized:
            scale = graph.constant(f"{path}.input{SCALE}", np.float32(activation.scale))
            zero = graph.constant(f"{path}.input.zero_point", np.uint8(activation.zero_point))
            quantized = graph.op("QuantizeLinear", tensor, scale, zero)
            self._quantized[key] = quantized, scale, zero
        return self._quantized[key]


def quantize_rows(weight: Array) -> tuple[Array, Array]:
    """Symmetric int8 rows of weight (rows, size), and the scale of each row (rows,) float32.

    Quantising what was dequantised gives the same integers and scales again.
    """
    scales = np.maximum(np.abs(weight).max(axis=1), 1e-12).astype(np.float32) / np.float32(127)
    return np.rint(weight / scales[:, None]).astype(np.int8), scales
