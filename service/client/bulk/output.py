"""The file that is being written: `PATH.part` until it is whole, then PATH.

What `checkpoint` has returned from survives a kill and a loss of power, and ends with a whole
member: an output that is cut off there and goes on is the same bytes as one that was never cut.
"""

import fcntl
import os
from pathlib import Path
from typing import BinaryIO, Self

from service.client.bulk.codecs import Member, member_maker, reader_of
from service.errors import ConfigError


def part_of(path: Path) -> Path:
    """What is written until all is."""
    return path.with_name(path.name + ".part")


class Output:
    """Appends to the part of `path`, once it was told behind which byte; a context manager.

    One process at a time: raises ConfigError if another one writes it. And OSError.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._make_member = member_maker(path)
        self._member: Member | None = None
        self._size = 0
        self._file: BinaryIO = open(part_of(path), "ab")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._file.close()
            raise ConfigError(str(path), ["another process is writing it"]) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()

    def begin(self, size: int) -> None:
        """Cuts off what is behind the first `size` bytes."""
        self._file.truncate(size)
        self._size = size

    def write(self, data: bytes) -> None:
        """Adds text; nobody can rely on it yet."""
        if self._member is None:
            self._member = self._make_member()
        self._append(self._member.compress(data))

    def checkpoint(self) -> int:
        """Makes all that was written safe; returns the size of the file."""
        if self._member is not None:
            self._append(self._member.flush())
            self._member = None
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._size

    def finish(self) -> int:
        """`checkpoint` for the last time. A compressed file has a member, if an empty one."""
        if self._size == 0:
            self.write(b"")
        return self.checkpoint()

    def _append(self, data: bytes) -> None:
        self._size += self._file.write(data)


class OutputReader:
    """What is in an output that is whole, line by line; a context manager."""

    def __init__(self, path: Path) -> None:
        self._raw: BinaryIO = path.open("rb")
        self._text = reader_of(self._raw, path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._text.close()
        self._raw.close()

    def line(self) -> bytes:
        """The next line with its end; nothing after the last one."""
        return self._text.readline()


def publish(path: Path) -> None:
    """Gives a part that is finished its name, for good."""
    os.replace(part_of(path), path)
    sync_folder(path)


def sync_folder(path: Path) -> None:
    """Makes the name of a file as safe as what is in it."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
