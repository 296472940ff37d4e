"""The greatest of each row."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_BLOCK: Final = 64


def best_of(
    log_probs: NDArray[np.float32], ids: NDArray[np.int64], count: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The `count` best candidates of each row, best first, of few; equal ones in their order."""
    if count == 1:
        best = log_probs.argmax(axis=1)[:, None]
    else:
        best = np.argsort(-log_probs, axis=1, kind="stable")[:, :count]
    places = best + np.arange(0, log_probs.size, log_probs.shape[1])[:, None]
    return log_probs.take(places), ids.take(places)


def top_columns(values: NDArray[Any], count: int) -> NDArray[np.intp]:
    """Columns of the `count` greatest values of each row, descending; (rows, count).

    Maxima of blocks are vectorised and leave the selection a fraction of the work: the blocks with
    the `count` greatest maxima hold the `count` greatest values.
    """
    if count == 1:
        best: NDArray[np.intp] = values.argmax(axis=1)
        return best[:, None]
    num_rows, width = values.shape
    num_blocks = width // _BLOCK
    columns = np.broadcast_to(np.arange(width), values.shape)
    if 2 * count < num_blocks:
        whole = num_blocks * _BLOCK
        maxima = values[:, :whole].reshape(num_rows, num_blocks, _BLOCK).max(axis=2)
        blocks = np.sort(_greatest(maxima, count), axis=1)
        inside = (blocks[:, :, None] * _BLOCK + np.arange(_BLOCK)).reshape(num_rows, -1)
        columns = np.concatenate([inside, columns[:, whole:]], axis=1)
        values = np.take_along_axis(values, columns, axis=1)
    if count < values.shape[1]:
        best = np.sort(_greatest(values, count), axis=1)
        columns, values = (np.take_along_axis(each, best, axis=1) for each in (columns, values))
    order = np.argsort(-values, axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1)


def _greatest(values: NDArray[Any], count: int) -> NDArray[np.intp]:
    return np.argpartition(-values, count - 1, axis=1)[:, :count]
