"""Where onnxruntime would run each node of a graph on a machine with CUDA, and what it would copy.

A node without a kernel runs on the CPU. So does one that computes with shapes alone: it is small,
and its inputs are in the memory of the host already (`GetCpuPreferredNodes` of onnxruntime's
fallback_cpu_capability.cc). A tensor that is computed on one side and read on the other is copied
by a Memcpy node; for which the device waits, and with which a step can be no CUDA graph.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import onnx

from export.cuda.kernels import has_kernel, known_version
from export.graphs.types import HALF, element_types, opset_versions, schema_of

# Parameters that the kernels read and write in the host's memory, by their place.
_HOST_INPUTS: Mapping[str, frozenset[int]] = {
    "Clip": frozenset((1, 2)),
    "ConstantOfShape": frozenset((0,)),
    "CumSum": frozenset((1,)),
    "Expand": frozenset((1,)),
    "GRU": frozenset((4,)),
    "GroupQueryAttention": frozenset((6,)),
    "MultiHeadAttention": frozenset((8,)),
    "Range": frozenset((0, 1, 2)),
    "ReduceMax": frozenset((1,)),
    "ReduceMean": frozenset((1,)),
    "ReduceSum": frozenset((1,)),
    "Reshape": frozenset((1,)),
    "Slice": frozenset((1, 2, 3, 4)),
    "Split": frozenset((1,)),
    "Squeeze": frozenset((1,)),
    "Tile": frozenset((1,)),
    "TopK": frozenset((1,)),
    "Unsqueeze": frozenset((1,)),
}
_WITH_HOST_OUTPUT = frozenset(("Shape", "Size"))
_SMALL = 100  # elements of a constant that is as good as in the host's memory


@dataclass(frozen=True, slots=True)
class Placement:
    """Nodes by name, each list in the order of the graph."""

    on_device: tuple[str, ...]
    of_shapes: tuple[str, ...]
    """That run on the CPU because they compute with shapes alone."""
    without_kernel: tuple[str, ...]
    """That run on the CPU because CUDA has nothing for them, each with version and types."""
    copies: tuple[str, ...]
    """Tensors that cross between host and device in every run."""


def faults(model: onnx.ModelProto) -> list[str]:
    """What keeps a graph from running on the device as a whole; none if nothing does."""
    placement = place(model)
    return [
        *(f"{known_version()} has no CUDA kernel for {it}" for it in placement.without_kernel),
        *(f"{name} would be copied between host and device" for name in placement.copies),
    ]


def place(model: onnx.ModelProto) -> Placement:
    """Where each node of a graph without branches would run."""
    placer = _Placer(model)
    for node in model.graph.node:
        placer.place(node)
    return placer.placement()


class _Placer:
    def __init__(self, model: onnx.ModelProto) -> None:
        graph = model.graph
        self._types, self._versions = element_types(model), opset_versions(model)
        constants = {each.name: _num_elements(each) for each in graph.initializer}
        self._constants = constants.keys()
        self._small = {name for name, count in constants.items() if count <= _SMALL}
        self._inputs = {value.name for value in graph.input}
        self._on_host: set[str] = set()
        self._readers: dict[str, set[bool]] = {}
        self._placed: dict[str, list[str]] = {"device": [], "shapes": [], "nothing": []}

    def place(self, node: onnx.NodeProto) -> None:
        """Decide for one node, once those before it have been."""
        if not has_kernel(node, self._types, self._versions):
            where, name = "nothing", self._described(node)
        else:
            where, name = ("shapes" if self._is_of_shapes(node) else "device"), node.name
        self._placed[where].append(name)
        if where != "device" or node.op_type in _WITH_HOST_OUTPUT:
            self._on_host.update(node.output)
        host_inputs = _HOST_INPUTS.get(node.op_type, frozenset())
        for index, tensor in enumerate(node.input):
            if tensor and tensor not in self._constants:
                read_on_host = where != "device" or index in host_inputs
                self._readers.setdefault(tensor, set()).add(read_on_host)

    def placement(self) -> Placement:
        """What has been decided."""
        device, shapes, nothing = (tuple(names) for names in self._placed.values())
        return Placement(device, shapes, nothing, tuple(self._copies()))

    def _is_of_shapes(self, node: onnx.NodeProto) -> bool:
        host_inputs = _HOST_INPUTS.get(node.op_type, frozenset())
        return any(tensor in self._on_host for tensor in node.input) and all(
            self._types[tensor] != HALF
            and (
                tensor in self._small
                or tensor in self._inputs
                or (tensor in self._on_host and index not in host_inputs)
            )
            for index, tensor in enumerate(node.input)
            if tensor
        )

    def _copies(self) -> Iterator[str]:
        for tensor, read_on_host in self._readers.items():
            if tensor in self._inputs:
                crosses = len(read_on_host) > 1
            else:
                crosses = (tensor not in self._on_host) in read_on_host
            if crosses:
                yield tensor

    def _described(self, node: onnx.NodeProto) -> str:
        types = ", ".join(self._types[name][len("tensor(") : -1] for name in node.input if name)
        version = schema_of(node, self._versions).since_version
        return f"{node.name}: {node.op_type}-{version} of {types}"


def _num_elements(constant: onnx.TensorProto) -> int:
    count = 1
    for size in constant.dims:
        count *= size
    return count
