"""Writes an ONNX graph node by node, so that it holds what the runtime needs and nothing else.

A decode step of a small translator takes a few hundred microseconds, of which every node costs
about one or two whatever it does; tracing a torch module leaves three times as many nodes as
writing them down. Owns names, initialisers and the shape of the file. Knows neither networks nor
precisions.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike, NDArray
from onnx import helper, numpy_helper

# CUDA kernels are registered by exact operator version, and 20 is the last one that most of
# them have.
OPSET = 20
IR_VERSION = 10
CONTRIB = "com.microsoft"

Axes = Sequence[str | int]
Array = NDArray[Any]


class GraphBuilder:
    """One graph under construction; tensors are passed around by name."""

    def __init__(self, name: str, parent: "GraphBuilder | None" = None) -> None:
        self.name = name
        self._is_branch = parent is not None
        self._nodes: list[onnx.NodeProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._values: list[onnx.ValueInfoProto] = []
        self._initializers: dict[str, onnx.TensorProto] = parent._initializers if parent else {}

    @classmethod
    def like(cls, model: onnx.ModelProto) -> "GraphBuilder":
        """A graph with the inputs, outputs and constants of a finished one, and no nodes yet."""
        graph = cls(model.graph.name)
        graph._inputs, graph._outputs = list(model.graph.input), list(model.graph.output)
        graph._values = list(model.graph.value_info)
        graph._initializers = {tensor.name: tensor for tensor in model.graph.initializer}
        return graph

    def append(self, node: onnx.NodeProto) -> None:
        """Append a node as it is."""
        self._nodes.append(node)

    def shape_of(self, name: str) -> list[int]:
        """The sizes of an input's axes, 0 for those that have a name."""
        [value] = (value for value in self._inputs if value.name == name)
        return [axis.dim_value for axis in value.type.tensor_type.shape.dim]

    def input(self, name: str, dtype: type[np.generic], axes: Axes) -> str:
        """Declare an input; an axis is a size or a name."""
        self._inputs.append(_value_info(name, dtype, axes))
        return name

    def output(self, name: str, dtype: type[np.generic], axes: Axes) -> None:
        """Declare the tensor called `name` an output."""
        self._outputs.append(_value_info(name, dtype, axes))

    def declare(self, name: str, dtype: type[np.generic], axes: Axes) -> str:
        """State the type of an inner tensor that the runtime can't infer."""
        self._values.append(_value_info(name, dtype, axes))
        return name

    def constant(self, name: str, value: ArrayLike) -> str:
        """Keep `value` in the graph; a name that is already there is taken to be the same value."""
        if name not in self._initializers:
            self._initializers[name] = numpy_helper.from_array(np.asarray(value, order="C"), name)
        return name

    def ints(self, *values: int) -> str:
        """A one-dimensional int64 constant."""
        return self.constant(f"ints{list(values)}", np.array(values, np.int64))

    def op(
        self, op_type: str, *inputs: str, name: str = "", domain: str = "", **attributes: Any
    ) -> str:
        """Append a node with one output called `name`; an empty input is one that is left out."""
        (output,) = self.ops(
            op_type, *inputs, names=(name or self._fresh(op_type),), domain=domain, **attributes
        )
        return output

    def ops(
        self, op_type: str, *inputs: str, names: Sequence[str], domain: str = "", **attributes: Any
    ) -> Sequence[str]:
        """Append a node with several outputs; an empty name is an output that is left out."""
        node_name = self._fresh(op_type)
        node = helper.make_node(op_type, inputs, names, name=node_name, domain=domain, **attributes)
        self._nodes.append(node)
        return names

    def split(self, tensor: str, *sizes: int, axis: int = -1) -> Sequence[str]:
        """Cut `axis` of a tensor into pieces of the given sizes."""
        names = [f"{self._fresh('Split')}.{index}" for index in range(len(sizes))]
        return self.ops("Split", tensor, self.ints(*sizes), names=names, axis=axis)

    def branch(self, name: str) -> "GraphBuilder":
        """A graph for one side of an If: it sees this one's tensors and keeps its constants here.

        The runtime packs weights of the outer graph for the products of a branch too.
        """
        return GraphBuilder(name, self)

    def choose(
        self, condition: str, then: "GraphBuilder", otherwise: "GraphBuilder", names: Sequence[str]
    ) -> Sequence[str]:
        """Run one of two branches; the outputs that they declared are called `names` here."""
        branches = then._graph(), otherwise._graph()
        return self.ops(
            "If", condition, names=names, then_branch=branches[0], else_branch=branches[1]
        )

    def prune(self) -> None:
        """Drop the nodes and constants that no output depends on."""
        used = {output.name for output in self._outputs}
        nodes = []
        for node in reversed(self._nodes):
            if not used.isdisjoint(node.output):
                nodes.append(node)
                used.update(node.input)
        self._nodes = nodes[::-1]
        self._initializers = {name: c for name, c in self._initializers.items() if name in used}

    def build(self) -> onnx.ModelProto:
        """The finished model, checked for form."""
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
        model = helper.make_model(self._graph(), opset_imports=opsets, ir_version=IR_VERSION)
        onnx.checker.check_model(model)
        return model

    def _graph(self) -> onnx.GraphProto:
        initializers = [] if self._is_branch else list(self._initializers.values())
        return helper.make_graph(
            self._nodes,
            self.name,
            self._inputs,
            self._outputs,
            initializers,
            value_info=self._values,
        )

    def _fresh(self, op_type: str) -> str:
        prefix = f"{self.name}." if self._is_branch else ""
        return f"{prefix}{op_type}_{len(self._nodes)}"


def _value_info(name: str, dtype: type[np.generic], axes: Axes) -> onnx.ValueInfoProto:
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return helper.make_tensor_value_info(name, element, list(axes))


def weights_of(model: onnx.ModelProto) -> dict[str, Array]:
    """The arrays kept in a graph, by name."""
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
