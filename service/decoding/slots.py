"""Tables with a row for each slot of the trellis, which grow as sentences need it."""

from operator import gt
from typing import Any, Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

_Scalar = TypeVar("_Scalar", bound=np.generic)


class PerSlot(Generic[_Scalar]):
    """What each slot's sentence brought along, padded with `fill` to the extents of the largest.

    A sentence keeps its slot for life, wherever its rows move.
    """

    def __init__(self, dtype: type[_Scalar], num_axes: int = 0, *, fill: Any = 0) -> None:
        self.rows: NDArray[_Scalar] = np.full((0,) * (num_axes + 1), fill, dtype)
        self._fill: Final = fill

    def put(self, slot: int, values: Any) -> None:
        """The slot's row becomes `values`, and padding behind them."""
        if self.rows.ndim == 1:
            self.reserve(slot, ())
            self.rows[slot] = values
            return
        values = np.asarray(values, self.rows.dtype)
        self.reserve(slot, values.shape)
        self.rows[slot] = self._fill
        place: tuple[Any, ...] = (slot, *map(slice, values.shape))
        self.rows[place] = values

    def reserve(self, slot: int, shape: tuple[int, ...]) -> None:
        """Make room for a row of that shape without writing it."""
        num_slots, *extents = self.rows.shape
        if slot >= num_slots or any(map(gt, shape, extents)):
            self.rows = grown(self.rows, (slot + 1, *shape), self._fill)

    def __getitem__(self, slots: NDArray[np.intp]) -> NDArray[_Scalar]:
        """A copy of the rows of these slots."""
        rows: NDArray[_Scalar] = self.rows[slots]
        return rows


def grown(array: NDArray[_Scalar], needed: tuple[int, ...], fill: Any = None) -> NDArray[_Scalar]:
    """The array with every axis at least as long as needed; a growing axis doubles at least.

    What is added is `fill`, or left as it comes.
    """
    axes = zip(array.shape, needed, strict=True)
    shape = tuple(old if old >= new else max(new, 2 * old) for old, new in axes)
    if shape == array.shape:
        return array
    larger = np.empty(shape, array.dtype)
    if fill is not None:
        larger.fill(fill)
    larger[tuple(slice(old) for old in array.shape)] = array
    return larger
