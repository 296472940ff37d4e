"""A float32 graph with half the bits, for GPUs: their matrix units multiply float16 fastest.

An architecture is written down once; this changes the types of what was written, not its shape:

    NARROW   products, attention, recurrences and lookups           float16
    WIDE     softmax, log-softmax and layer norm                    float32
    others   the sums between layers, what becomes of a softmax     float32 if what they are given
                                                                    is, else float16

Weights, memory and state are float16, and what a step tells of its candidates is float32. A
product costs a cast in and a cast out at most, and no sum of layers is rounded to ten bits.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from export.graphs.builder import Array
from export.graphs.types import FLOAT, HALF, Types, element_types, opset_versions, output_types

NARROW = frozenset(
    ("MatMul", "FusedMatMul", "Gemm", "MultiHeadAttention", "GroupQueryAttention", "GRU", "Gather")
)
WIDE = frozenset(("Softmax", "LogSoftmax", "LayerNormalization"))
RESULTS = frozenset(("candidate_log_probs", "log_probs", "attention"))
"""Outputs that stay float32; all others are memory and state."""

_ELEMENTS = {FLOAT: TensorProto.FLOAT, HALF: TensorProto.FLOAT16}
_SUFFIXES = {FLOAT: ".float", HALF: ".half"}


def half_precision(model: onnx.ModelProto) -> onnx.ModelProto:
    """The float16 form of a float32 graph without branches."""
    narrowed = _Narrowed(model)
    for node in model.graph.node:
        narrowed.add(node)
    return narrowed.build()


class _Narrowed:
    """The new graph under construction.

    A float tensor of the old graph has one or two forms, each under a name of its own: that in
    which it is computed, and a cast of it once somebody wants the other type.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        self._model = model
        self._versions = opset_versions(model)
        self._old_types = element_types(model)
        self._constants = {each.name: each for each in model.graph.initializer}
        self._outputs = {
            output.name: FLOAT if output.name in RESULTS else HALF
            for output in model.graph.output
            if self._old_types[output.name] == FLOAT
        }
        self._nodes: list[onnx.NodeProto] = []
        self._kept: list[onnx.TensorProto] = []
        self._forms: dict[str, dict[str, str]] = {}
        self._types: Types = {}
        for value in model.graph.input:
            self._add_form(value.name, self._narrow(value.name))

    def add(self, node: onnx.NodeProto) -> None:
        """Append a node of the old graph, of the type that it is to have in the new one."""
        wanted = self._type_for(node)
        new = onnx.NodeProto()
        new.CopyFrom(node)
        new.input[:] = [name and self._form(name, wanted) for name in node.input]
        types = output_types(new, self._types, self._versions)
        new.output[:] = [name and self._add_form(name, types[name]) for name in node.output]
        self._nodes.append(new)
        for name in node.output:
            if name in self._outputs:
                self._form(name, self._outputs[name])

    def build(self) -> onnx.ModelProto:
        """The finished model, checked for form."""
        old = self._model.graph
        inputs, outputs = map(self._declared, old.input), map(self._declared, old.output)
        graph = helper.make_graph(self._nodes, old.name, [*inputs], [*outputs], self._kept)
        new = helper.make_model(
            graph, opset_imports=self._model.opset_import, ir_version=self._model.ir_version
        )
        onnx.checker.check_model(new)
        return new

    def _type_for(self, node: onnx.NodeProto) -> str:
        if node.op_type in WIDE:
            return FLOAT
        computed = (self._forms[name] for name in node.input if self._is_computed(name))
        is_wide = any(next(iter(forms)) == FLOAT for forms in computed)
        return FLOAT if is_wide and node.op_type not in NARROW else HALF

    def _is_computed(self, name: str) -> bool:
        return bool(name) and name not in self._constants

    def _narrow(self, name: str) -> str:
        """The type of an input."""
        old = self._old_types[name]
        return HALF if old == FLOAT else old

    def _form(self, name: str, wanted: str) -> str:
        """What a tensor of the old graph is called in a type; only a float has a choice."""
        if self._old_types[name] != FLOAT:
            wanted = self._old_types[name]
        forms = self._forms.get(name, {})
        if wanted in forms:
            return forms[wanted]
        new = self._add_form(name, wanted)
        if name in self._constants:
            values = numpy_helper.to_array(self._constants[name])
            self._kept.append(numpy_helper.from_array(_as(wanted, values), new))
        else:
            [computed] = (form for type_, form in forms.items() if type_ != wanted)
            to = _ELEMENTS[wanted]
            self._nodes.append(helper.make_node("Cast", [computed], [new], f"Cast.{new}", to=to))
        return new

    def _add_form(self, name: str, type_: str) -> str:
        """Name one more form of a tensor: the first gets its name, or the one that is an output."""
        forms = self._forms.setdefault(name, {})
        is_plain = self._outputs[name] == type_ if name in self._outputs else not forms
        forms[type_] = name if is_plain else name + _SUFFIXES[type_]
        self._types[forms[type_]] = type_
        return forms[type_]

    def _declared(self, old: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
        """An input or output as the new graph has it."""
        new = onnx.ValueInfoProto()
        new.CopyFrom(old)
        if self._types[old.name] == HALF:
            new.type.tensor_type.elem_type = TensorProto.FLOAT16
        return new


def _as(type_: str, values: Array) -> Array:
    """What is too far from 0 for float16, such as the score of padding, becomes its extreme."""
    if type_ != HALF:
        return values
    extreme = float(np.finfo(np.float16).max)
    return np.clip(values, -extreme, extreme).astype(np.float16)
