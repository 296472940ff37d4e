"""Files that somebody else may replace at any time, read without ever waiting for them."""

import errno
import os
import stat
from pathlib import Path


def read_regular(path: Path, max_bytes: int = -1) -> bytes:
    """What is in a regular file, or behind a link to one; its first `max_bytes` unless negative.

    Raises OSError, also for whatever else has the name: a pipe would be waited for, a device may
    never end.
    """
    with open(path, "rb", opener=_open_at_once) as file:
        # Asked of what was opened, so that nothing can take its place in between.
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return file.read(max_bytes)


def _open_at_once(path: str, flags: int) -> int:
    """Opening a pipe waits for its writer otherwise; to a regular file the flag means nothing."""
    return os.open(path, flags | os.O_NONBLOCK)
