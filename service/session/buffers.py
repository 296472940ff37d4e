"""Where the tensors of the live rows lie between steps.

Rows fill every buffer densely from 0, so the live rows of a buffer are one contiguous tensor at a
fixed address, which the graphs read and write in place:

    |row 0 .....|row 1 .....|row 2 .....|free            each row as long as the longest needs
    |row 0 .....|row 1 .....|row 2 .....|row 3 .....|    join: write behind the last row
    |row 0 .....|row 3 .....|row 2 .....|free            leave: move rows into the holes

Here they lie in the host's memory; `device_buffers` has those of a device of its own.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from service.bundle import TensorSpec
from service.session.ancestry import Indices
from service.session.reserve import reserve

Array = npt.NDArray[Any]


Place = tuple[str, int, np.dtype[Any], tuple[int, ...], int]
"""Device, its number, type, shape and address of a tensor, as bindings take them."""


class RowBuffer(ABC):
    """One memory or state tensor of the live rows, at a fixed address.

    The first axis is rows: one per sentence, or per beam if `per_row`. The extents of other named
    axes ("source", "target", "shortlist") change: rows are laid out for those of the moment.
    """

    def __init__(self, spec: TensorSpec, max_rows: int, max_extents: Mapping[str, int]) -> None:
        self.name = spec.name
        self.per_row = spec.axes[0] != "sentence"
        self.axes = {
            size: axis for axis, size in enumerate(spec.axes) if axis and isinstance(size, str)
        }
        extents = (max_extents[size] if isinstance(size, str) else size for size in spec.axes[1:])
        self._sizes = [max_rows, *extents]
        self._dtype = np.dtype(spec.dtype)
        self._padding = spec.padding

    @abstractmethod
    def place(self, num_rows: int) -> Place:
        """That of the first rows."""

    @abstractmethod
    def read(self, num_rows: int) -> Array:
        """The first rows, in the host's memory."""

    @abstractmethod
    def resize(self, axis_name: str, extent: int, num_rows: int) -> None:
        """Lays the first `num_rows` rows out for another extent; what is added is padding."""

    @abstractmethod
    def write(self, to: Indices, values: Array) -> None:
        """Row `to[i]` becomes `values[i]`; shorter extents are padded."""

    @abstractmethod
    def move(self, moves: "Moves") -> None:
        """Lets rows continue others."""

    @abstractmethod
    def move_up_to(self, moves: "Moves", ends: Indices) -> None:
        """The same, but of row `origin[i]` no more is needed than lies before `ends[i]` along the
        target.
        """

    @abstractmethod
    def copy(self, to: Indices, origin: Indices) -> None:
        """Copies single positions along the target; see `Copies.cells` and `layout`."""

    def _lay_out(self) -> None:
        """Takes note of new extents. `layout` is a cache's: the parts of a row, the places of each
        along the target.
        """
        if axis := self.axes.get("target"):
            self.layout = math.prod(self._sizes[1:axis]), self._sizes[axis]


class HostRowBuffer(RowBuffer):
    """In host memory: the graphs read and write what numpy does."""

    def __init__(self, spec: TensorSpec, max_rows: int, max_extents: Mapping[str, int]) -> None:
        super().__init__(spec, max_rows, max_extents)
        # Untouched, it costs nothing: the largest layout is reserved at once.
        self._flat = reserve(math.prod(self._sizes), self._dtype)
        self._lay_out()

    def place(self, num_rows: int) -> Place:
        rows = self.read(num_rows)
        return "cpu", 0, rows.dtype, rows.shape, int(rows.ctypes.data)

    def read(self, num_rows: int) -> Array:
        """A view of the first rows."""
        return self._rows[:num_rows]

    def resize(self, axis_name: str, extent: int, num_rows: int) -> None:
        axis = self.axes[axis_name]
        before = (slice(None),) * (axis - 1)
        kept = self._rows[(slice(num_rows), *before, slice(extent))].copy()
        self._sizes[axis] = extent
        self._lay_out()
        if num_rows:
            self.write(np.arange(num_rows), kept)

    def write(self, to: Indices, values: Array) -> None:
        for axis, extent in enumerate(values.shape[1:], 1):
            if extent < self._sizes[axis]:
                # It has no weight in the graph, but 0 times a NaN left by an old occupant is NaN.
                self._rows[(slice(None),) * axis + (slice(extent, None),)][to] = self._padding
        self._rows[(slice(None), *map(slice, values.shape[1:]))][to] = values

    def move(self, moves: "Moves") -> None:
        rows = self._rows
        if moves.are_apart:
            for to, origin in zip(moves.to.tolist(), moves.origin.tolist(), strict=True):
                rows[to] = rows[origin]
        else:
            rows[moves.to] = rows[moves.origin]

    def move_up_to(self, moves: "Moves", ends: Indices) -> None:
        if not moves.are_apart:
            self.move(moves)
            return
        rows = np.moveaxis(self._rows, self.axes["target"], 1)
        for to, origin, end in zip(
            moves.to.tolist(), moves.origin.tolist(), ends.tolist(), strict=True
        ):
            rows[to, :end] = rows[origin, :end]

    def copy(self, to: Indices, origin: Indices) -> None:
        self._cells[to] = self._cells[origin]

    def _lay_out(self) -> None:
        super()._lay_out()
        self._rows = self._flat[: math.prod(self._sizes)].reshape(self._sizes)
        if axis := self.axes.get("target"):
            # One opaque element for all that lies at a position: numpy copies these fastest.
            size = math.prod(self._sizes[axis + 1 :]) * self._flat.itemsize
            self._cells = self._flat.view(np.dtype((np.void, size)))


class Moves(NamedTuple):
    """Row `to[i]` is to become what row `origin[i]` was before any of them changed."""

    to: Indices
    origin: Indices
    are_apart: bool
    """No row is both read and written, as when holes are filled from the end."""

    @classmethod
    def of(cls, rows: Indices) -> "Moves":
        """The moves after which row i is what row `rows[i]` was; without those that stay."""
        to = np.flatnonzero(rows != np.arange(len(rows)))
        origin = rows[to]
        return cls(to, origin, not len(to) or bool(origin.min() > to[-1]))
