"""How the C library treats memory that training frees and soon wants again."""

import ctypes

# From glibc's malloc.h.
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4


def keep_freed_memory() -> None:
    """Ask glibc to keep the pages of freed tensors; nothing happens with another C library.

    By default each large tensor is mapped anew and its pages are zeroed by the kernel one by one,
    which takes about as long as the arithmetic of a training step. The environment variable
    GLIBC_TUNABLES=glibc.malloc.hugetlb=1 saves another tenth, but only the shell can set it.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, -1)
        mallopt(M_TOP_PAD, 256 * 2**20)
