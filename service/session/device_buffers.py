"""Rows in the memory of a device, moved there by graphs of a node or two.

Nothing but indices and newcomers crosses over. A buffer is seen as rows of any width that divides
it, and changed in place: `row_graphs` has for each type of element, as `export.graphs.rows` writes
them,

    write   row to[i] becomes values[i]
    move    row to[i] becomes what row origin[i] was before any of them changed

ScatterND writes to where it is bound and copies the rest only if that is somewhere else. On the
CPU as a device all of it runs likewise, which is how it is tested.
"""

import math
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

import numpy as np
import onnxruntime

from service.bundle import TensorSpec
from service.session.ancestry import Indices
from service.session.buffers import Array, Moves, Place, RowBuffer
from service.session.loading import load_session

_FOLDER: Final = Path(__file__).parent / "row_graphs"


class RowGraphs:
    """The graphs that change rows on a device; safe to share between threads."""

    def __init__(self, device: str, dtypes: Collection[str], max_bytes: int = 0) -> None:
        """`dtypes` are those of the elements; each graph takes at most `max_bytes`, 0 is all."""
        self.device = device
        self._sessions = {
            (name, np.dtype(dtype)): load_session(
                _FOLDER / f"{name}.{dtype}.onnx", device, max_device_bytes=max_bytes
            )
            for name in ("write", "move")
            for dtype in dtypes
        }

    def write(self, rows: Place, to: Indices, values: Array) -> None:
        """values (len(to), width) to some of the `rows` (count, width)."""
        self._run("write", rows, to, values=values)

    def move(self, rows: Place, to: Indices, origin: Indices) -> None:
        """Some of the `rows` (count, width) to others."""
        self._run("move", rows, to, origin=origin)

    def _run(self, name: str, rows: Place, to: Indices, **given: Array) -> None:
        session = self._sessions[name, rows[2]]
        binding = onnxruntime.IOBinding(session)
        binding.bind_input("rows", *rows)
        binding.bind_cpu_input("to", to[:, None])
        for input_name, array in given.items():
            binding.bind_cpu_input(input_name, array)
        binding.bind_output("changed", *rows)
        session.run_with_iobinding(binding)


class DeviceRowBuffer(RowBuffer):
    """In the memory of a device, of which it takes at once what its largest layout needs."""

    def __init__(
        self, spec: TensorSpec, max_rows: int, max_extents: Mapping[str, int], graphs: RowGraphs
    ) -> None:
        super().__init__(spec, max_rows, max_extents)
        self._graphs = graphs
        num_elements = math.prod(self._sizes)
        # Two cells along any axis, so that a whole one of padding is behind all rows.
        spare = 2 * max(
            (math.prod(self._sizes[axis + 1 :]) for axis in self.axes.values()), default=0
        )
        initial = np.zeros(num_elements + spare, self._dtype)
        initial[num_elements:] = self._padding
        self._num_elements = len(initial)
        self._value = onnxruntime.OrtValue.ortvalue_from_numpy(initial, graphs.device)
        self._address = self._value.data_ptr()
        self._lay_out()

    def place(self, num_rows: int) -> Place:
        return self._as_shape(num_rows, *self._sizes[1:])

    def read(self, num_rows: int) -> Array:
        """A copy of the first rows."""
        shape = num_rows, *self._sizes[1:]
        elements: Array = self._value.numpy()[: math.prod(shape)].copy()
        return elements.reshape(shape)

    def resize(self, axis_name: str, extent: int, num_rows: int) -> None:
        axis = self.axes[axis_name]
        num_parts, width = num_rows * math.prod(self._sizes[1:axis]), self._width(axis)
        before, self._sizes[axis] = self._sizes[axis], extent
        self._lay_out()
        if not num_rows:
            return
        to = np.arange(num_parts * extent)
        part, place = np.divmod(to, extent)
        padding = self._num_elements // width - 1
        self._move(width, to, np.where(place < before, part * before + place, padding))

    def write(self, to: Indices, values: Array) -> None:
        padded = np.full((len(to), *self._sizes[1:]), self._padding, self._dtype)
        padded[(slice(None), *map(slice, values.shape[1:]))] = values
        width = self._width(0)
        self._graphs.write(self._in_rows(width), to, padded.reshape(len(to), width))

    def move(self, moves: Moves) -> None:
        self._move(self._width(0), moves.to, moves.origin)

    def move_up_to(self, moves: Moves, ends: Indices) -> None:
        # A device copies the rest of a row sooner than it is told to leave it out.
        self.move(moves)

    def copy(self, to: Indices, origin: Indices) -> None:
        self._move(self._width(self.axes["target"]), to, origin)

    def _move(self, width: int, to: Indices, origin: Indices) -> None:
        if len(to):
            self._graphs.move(self._in_rows(width), to, origin)

    def _width(self, axis: int) -> int:
        """Elements of all that lies at one place along an axis."""
        return math.prod(self._sizes[axis + 1 :])

    def _in_rows(self, width: int) -> Place:
        return self._as_shape(self._num_elements // width, width)

    def _as_shape(self, *shape: int) -> Place:
        return self._graphs.device, 0, self._dtype, shape, self._address
