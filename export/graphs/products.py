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
from typing import TYPE_CHECKING, Protocol

import numpy as np

from export.graphs.builder import CONTRIB, Array, GraphBuilder

if TYPE_CHECKING:
    from export.graphs.shortlist import ShortlistLayer

SCALE = ".scale"
LOOKUP = ".lookup"
MASKED = -1e9
"""The score of padding: finite, so that a row of nothing else is no NaN."""


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


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """The torch parameters `path.weight` (out, in) and, unless None, `path.bias` (out,)."""

    path: str
    weight: Array
    bias: Array | None


class Products(Protocol):
    """The operations whose cost or storage depends on the precision."""

    @property
    def shortlist(self) -> "ShortlistLayer | None":
        """How to choose from the words of a sentence alone, if the step can do so."""

    def quantize(
        self, graph: GraphBuilder, linear: Linear, tensor: str
    ) -> tuple[str, str, str] | None:
        """The integers of a product's input, their scale and zero point; None in float32."""

    def linear(self, graph: GraphBuilder, linear: Linear, tensor: str) -> str:
        """tensor (..., in) -> (..., out)."""

    def relu(self, graph: GraphBuilder, tensor: str) -> str:
        """A rectified tensor that goes into a product and nowhere else."""

    def lookup(self, graph: GraphBuilder, linear: Linear, factor: float, ids: str) -> str:
        """ids (...) -> factor * weight[ids] (..., in)."""

    def self_attention(
        self, graph: GraphBuilder, linear: Linear, tensor: str, lengths: str, num_heads: int
    ) -> str:
        """tensor (batch, length, in) -> context (batch, length, out / 3), lengths (batch,) int32.

        The linear layer gives query, key and value side by side.
        """


class FloatProducts:
    """Plain float32."""

    shortlist = None

    def __init__(self) -> None:
        self.inputs: dict[str, str] = {}
        """The input tensor of each product, by path: what has to be measured for int8."""

    def quantize(
        self, graph: GraphBuilder, linear: Linear, tensor: str
    ) -> tuple[str, str, str] | None:
        return None

    def linear(self, graph: GraphBuilder, linear: Linear, tensor: str) -> str:
        self.inputs[linear.path] = tensor
        output = graph.op(
            "MatMul", tensor, graph.constant(f"{linear.path}.weight", linear.weight.T)
        )
        if linear.bias is None:
            return output
        return graph.op("Add", output, graph.constant(f"{linear.path}.bias", linear.bias))

    def relu(self, graph: GraphBuilder, tensor: str) -> str:
        return graph.op("Relu", tensor)

    def lookup(self, graph: GraphBuilder, linear: Linear, factor: float, ids: str) -> str:
        table = graph.constant(linear.path + LOOKUP, linear.weight * np.float32(factor))
        return graph.op("Gather", table, ids)

    def self_attention(
        self, graph: GraphBuilder, linear: Linear, tensor: str, lengths: str, num_heads: int
    ) -> str:
        sizes = [len(linear.weight) // 3] * 3
        query, key, value = graph.split(self.linear(graph, linear, tensor), *sizes)
        return graph.op(
            "MultiHeadAttention",
            *(query, key, value, "", lengths),
            domain=CONTRIB,
            num_heads=num_heads,
            mask_filter_value=MASKED,
        )


class IntegerProducts:
    """uint8 activations by int8 weights, for the CPU."""

    def __init__(
        self,
        ranges: Mapping[str, ActivationRange],
        shortlist: "ShortlistLayer | None" = None,
    ) -> None:
        self.shortlist = shortlist
        self._ranges = ranges
        self._quantized: dict[tuple[str, ActivationRange], tuple[str, str, str]] = {}

    def linear(self, graph: GraphBuilder, linear: Linear, tensor: str) -> str:
        quantized, scale, zero_point = self.quantize(graph, linear, tensor)
        weight, weight_scale, bias = self._constants(graph, linear)
        return graph.op(
            "MatMulIntegerToFloat",
            *(quantized, weight, scale, weight_scale, zero_point, "", bias),
            domain=CONTRIB,
        )

    def relu(self, graph: GraphBuilder, tensor: str) -> str:
        # A rectified range starts at 0, so quantising it clips everything below: that is the ReLU.
        return tensor

    def lookup(self, graph: GraphBuilder, linear: Linear, factor: float, ids: str) -> str:
        rows, row_scales = quantize_rows(linear.weight)
        table = (rows.astype(np.int16) + 128).astype(np.uint8)
        name = linear.path + LOOKUP
        return graph.op(
            "GatherBlockQuantized",
            graph.constant(name, table),
            ids,
            graph.constant(name + SCALE, row_scales[:, None] * np.float32(factor)),
            domain=CONTRIB,
            bits=8,
            # One block holds a whole row, and so one scale; the operator wants a power of two.
            block_size=max(16, 1 << (table.shape[1] - 1).bit_length()),
            gather_axis=0,
            quantize_axis=1,
        )

    def self_attention(
        self, graph: GraphBuilder, linear: Linear, tensor: str, lengths: str, num_heads: int
    ) -> str:
        # One node instead of product, split and attention: a tenth of an encoder's time.
        quantized, scale, zero_point = self.quantize(graph, linear, tensor)
        weight, weight_scale, bias = self._constants(graph, linear)
        return graph.op(
            "QAttention",
            *(quantized, weight, bias, scale, weight_scale, lengths, zero_point),
            domain=CONTRIB,
            num_heads=num_heads,
            mask_filter_value=MASKED,
        )

    def _constants(self, graph: GraphBuilder, linear: Linear) -> tuple[str, str, str]:
        """Integers (in, out), their scales (out,) and the bias, empty if there is none."""
        rows, row_scales = quantize_rows(linear.weight)
        name = f"{linear.path}.weight"
        return (
            graph.constant(name, rows.T),
            graph.constant(name + SCALE, row_scales),
            "" if linear.bias is None else graph.constant(f"{linear.path}.bias", linear.bias),
        )

    def quantize(self, graph: GraphBuilder, linear: Linear, tensor: str) -> tuple[str, str, str]:
        # Once for all products of a tensor.
        path = linear.path
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
