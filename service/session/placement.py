"""Where the rows of a model live: beside the graphs that read them.

On the CPU these are numpy's arrays, bound once. A device has a memory of its own, and what is bound
from the host's is copied there when it is bound: so the few numbers that change from step to step
are bound anew before each one, and rows never leave.
"""

from collections.abc import Collection, Mapping
from typing import Protocol

import onnxruntime

from service.bundle import TensorSpec
from service.session.buffers import Array, HostRowBuffer, RowBuffer
from service.session.device_buffers import DeviceRowBuffer, RowGraphs

Sent = tuple[tuple[str, Array], ...]
"""Inputs by name that a binding is given anew before each run."""


class Placement(Protocol):
    """Makes buffers where a step graph reads and writes them; safe to share between threads."""

    def buffer(
        self, spec: TensorSpec, max_rows: int, max_extents: Mapping[str, int]
    ) -> RowBuffer: ...

    def bind(self, binding: onnxruntime.IOBinding, inputs: Mapping[str, Array]) -> Sent:
        """Binds arrays whose values will change, or says that they are to be sent each time."""


class OnHost:
    """For graphs that run on the CPU."""

    def buffer(self, spec: TensorSpec, max_rows: int, max_extents: Mapping[str, int]) -> RowBuffer:
        return HostRowBuffer(spec, max_rows, max_extents)

    def bind(self, binding: onnxruntime.IOBinding, inputs: Mapping[str, Array]) -> Sent:
        for name, array in inputs.items():
            binding.bind_cpu_input(name, array)
        return ()


class OnDevice:
    """For graphs that run on a device of its own; `dtypes` are those of its rows' elements."""

    def __init__(self, device: str, dtypes: Collection[str], max_bytes: int = 0) -> None:
        self._graphs = RowGraphs(device, dtypes, max_bytes)

    def buffer(self, spec: TensorSpec, max_rows: int, max_extents: Mapping[str, int]) -> RowBuffer:
        return DeviceRowBuffer(spec, max_rows, max_extents, self._graphs)

    def bind(self, binding: onnxruntime.IOBinding, inputs: Mapping[str, Array]) -> Sent:
        return tuple(inputs.items())


def placement_on(device: str, dtypes: Collection[str], max_bytes: int = 0) -> Placement:
    """That of the rows of graphs on `device`."""
    return OnHost() if device == "cpu" else OnDevice(device, dtypes, max_bytes)
