"""The process's memory as glibc's allocator keeps it; with another one, nothing is done."""

import ctypes
import os

_M_ARENA_MAX = -8  # of malloc.h
_CORES_A_HEAP = 4


def share_heaps(num_cores: int) -> None:
    """Has threads share a few heaps. To be called before there are threads.

    By default nearly each has its own, eight for every core: what is free in one is lost to the
    others, and the tensors of a batch come and go in all of them. A worker needs its heap for a
    hundredth of its time. An operator's MALLOC_ARENA_MAX stands.
    """
    if "MALLOC_ARENA_MAX" in os.environ:
        return
    if mallopt := getattr(ctypes.CDLL(None), "mallopt", None):
        mallopt(_M_ARENA_MAX, max(1, num_cores // _CORES_A_HEAP))
