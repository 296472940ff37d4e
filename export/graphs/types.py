"""The element type of every tensor of a graph, from the schemas that onnxruntime registers.

onnx infers nothing behind an operator of `com.microsoft`; what an operator's schema says of the
types of its inputs and outputs is enough to tell them all. Types are called what schemas and
kernels call them: `tensor(float16)`.
"""

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import onnx
from onnx import helper
from onnxruntime.capi import onnxruntime_pybind11_state as runtime

FLOAT, HALF = "tensor(float)", "tensor(float16)"

Types = dict[str, str]
"""By the name of a tensor, or of a variable of a schema."""


def element_types(model: onnx.ModelProto) -> Types:
    """Of every tensor of a graph without branches."""
    versions, types = opset_versions(model), given_types(model.graph)
    for node in model.graph.node:
        types |= output_types(node, types, versions)
    return types


def given_types(graph: onnx.GraphProto) -> Types:
    """Of what no node computes: inputs and constants."""
    inputs = {value.name: value.type.tensor_type.elem_type for value in graph.input}
    constants = {constant.name: constant.data_type for constant in graph.initializer}
    return {name: type_name(element) for name, element in (inputs | constants).items()}


def output_types(
    node: onnx.NodeProto, types: Mapping[str, str], versions: Mapping[str, int]
) -> Types:
    """Of a node's outputs, given those of its inputs.

    An output of a type that no input has is of the first one that the schema allows and an input
    has too, as the scores of an attention are; else of the only one.
    """
    if node.op_type == "Cast":
        return {node.output[0]: type_name(attribute(node, "to"))}
    bound = {
        parameter.typeStr: types[name]
        for parameter, name in parameters_of(node, versions)
        if name in types
    }
    formal = _formal(schema_of(node, versions).outputs, len(node.output))
    named = zip(node.output, formal, strict=False)
    return {name: _type_of(parameter, bound) for name, parameter in named if name}


def parameters_of(node: onnx.NodeProto, versions: Mapping[str, int]) -> Iterator[tuple[Any, str]]:
    """Each parameter of a node's schema with the tensor that stands for it: inputs, outputs."""
    schema = schema_of(node, versions)
    for formal, names in ((schema.inputs, node.input), (schema.outputs, node.output)):
        pairs = zip(_formal(formal, len(names)), names, strict=False)
        yield from ((parameter, name) for parameter, name in pairs if name)


def schema_of(node: onnx.NodeProto, versions: Mapping[str, int]) -> Any:
    """onnxruntime's schema of a node's operator, of the version that its graph asks for.

    Raises ValueError for an operator that it doesn't know.
    """
    version = versions[node.domain]
    known = [
        schema
        for schema in _schemas().get((node.domain, node.op_type), ())
        if schema.since_version <= version
    ]
    if not known:
        raise ValueError(f"{node.op_type} {version} of {node.domain or 'ai.onnx'} is unknown")
    return max(known, key=lambda schema: schema.since_version)


def opset_versions(model: onnx.ModelProto) -> dict[str, int]:
    """The version that a graph asks for, of each domain."""
    return {opset.domain: opset.version for opset in model.opset_import}


def attribute(node: onnx.NodeProto, name: str) -> Any:
    """The value of a node's attribute. Raises KeyError if it has none of that name."""
    values = {each.name: each for each in node.attribute}
    return helper.get_attribute_value(values[name])


def type_name(element: int) -> str:
    """A `TensorProto.DataType` as schemas call it."""
    name = helper.tensor_dtype_to_np_dtype(element).name
    return f"tensor({ {'float32': 'float', 'float64': 'double'}.get(name, name) })"


@functools.cache
def _schemas() -> Mapping[tuple[str, str], Sequence[Any]]:
    found: dict[tuple[str, str], list[Any]] = {}
    for schema in runtime.get_all_operator_schema():
        found.setdefault((schema.domain, schema.name), []).append(schema)
    return found


def _formal(parameters: Sequence[Any], count: int) -> Sequence[Any]:
    """A schema's parameters for so many tensors: the last one may stand for several."""
    return [*parameters, *([parameters[-1]] * (count - len(parameters)))]


def _type_of(parameter: Any, bound: Mapping[str, str]) -> str:
    if parameter.typeStr in bound:
        return bound[parameter.typeStr]
    allowed: list[str] = sorted(parameter.types)
    return next((known for known in bound.values() if known in allowed), allowed[0])
