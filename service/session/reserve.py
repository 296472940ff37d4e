"""Memory for what may become large and mostly doesn't."""

import math
import mmap
from typing import Any

import numpy as np
import numpy.typing as npt


def reserve(shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Zeros that cost nothing until they are touched, from a cache line's start on.

    numpy's own come from malloc, which clears them, and so touches them all, once it has grown used
    to blocks of that size; from 4 MiB on it asks for huge pages, of which a touch costs 2 MiB; and
    it starts 16 bytes behind a line's start, where every other vector that the kernels read lies
    across two lines.
    """
    count = math.prod((shape,) if isinstance(shape, int) else shape)
    # The mapping lives as long as an array of it does.
    memory = mmap.mmap(-1, max(1, count * np.dtype(dtype).itemsize), mmap.MAP_PRIVATE)
    return np.frombuffer(memory, dtype, count).reshape(shape)
