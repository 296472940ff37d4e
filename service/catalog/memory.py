"""What a closed model leaves behind, given back to the system."""

import ctypes


def give_back() -> None:
    """Returns freed memory to the system, where the C library can: glibc keeps it otherwise.

    Models are loaded beside each other, so that what one leaves is full of holes, and the process
    would grow with every replacement.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim:
        trim(0)
