"""The lines of a file, or of a share of it, one after another, each with the place after it.

Only a line feed ends a line, with or without a carriage return before it. A place is enough to go
on from there another time, and to see whether what is before it has changed.
"""

import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self

from service.client.bulk.codecs import damages, is_compressed, reader_of
from service.client.bulk.shard import Shard
from service.errors import InvalidArgument

# A longer line isn't kept in memory; a server takes no text of that size either.
MAX_LINE_BYTES = 1 << 24
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Place:
    """Between two lines of a file.

    offset: bytes of text before it, decompressed. lines: how many of them end before it.
    checksum: the CRC-32 of what is before it.
    """

    offset: int = 0
    lines: int = 0
    checksum: int = 0

    def after(self, data: bytes) -> "Place":
        """The place after `data` that begins here."""
        return Place(
            self.offset + len(data), self.lines + data.count(b"\n"), zlib.crc32(data, self.checksum)
        )


@dataclass(frozen=True, slots=True)
class Line:
    """A line. number: from 1, in the whole file. data: without its end; None if it is too long.

    end: what ends it, as it is in the file; nothing if the file does. after: the place behind it.
    """

    number: int
    data: bytes | None
    end: bytes
    after: Place


class LineReader:
    """The lines of a share of a file, to be iterated over once. A context manager.

    Raises OSError, and InvalidArgument if a compressed file is damaged.
    """

    def __init__(self, path: Path, shard: Shard) -> None:
        self._path = path
        self._span = shard.span(_text_size(path)) if shard.count > 1 else None
        self._raw: BinaryIO = path.open("rb")
        self.file_size = os.fstat(self._raw.fileno()).st_size
        self._text = reader_of(self._raw, path)
        self._place = Place()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.push(self)
            self._skip_to_line(self._span[0] if self._span else 0)
            stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        self._text.close()
        self._raw.close()

    @property
    def place(self) -> Place:
        """Where what was read ends."""
        return self._place

    def progress(self, place: Place) -> tuple[int, int]:
        """How many bytes lie before a place that was read, and all there are.

        Of a compressed file these are bytes on disk, and what was read counts: no place has one.
        """
        if self._span is not None:
            start, stop = self._span
            return min(place.offset, stop) - start, stop - start
        is_plain = self._text is self._raw
        return place.offset if is_plain else self._raw.tell(), self.file_size

    def go_on_from(self, place: Place) -> bool:
        """Reads up to a place; False: what is before it is no longer what it was."""
        self._skip_to(place.offset)
        return self._place == place

    def __iter__(self) -> Iterator[Line]:
        while self._span is None or self._place.offset < self._span[1]:
            number = self._place.lines + 1
            data = self._read_line()
            if not data:
                return
            if len(data) <= MAX_LINE_BYTES:
                text, end = _without_end(data)
                yield Line(number, text, end, self._place)
            else:
                yield Line(number, None, self._rest_of_line(data), self._place)

    def _skip_to_line(self, offset: int) -> None:
        """To the first line that begins at `offset` or later."""
        if offset:
            self._skip_to(offset - 1)
            self._rest_of_line(self._read_line())

    def _skip_to(self, offset: int) -> None:
        while missing := max(0, offset - self._place.offset):
            if not self._read(min(missing, _CHUNK_BYTES)):
                return

    def _rest_of_line(self, data: bytes) -> bytes:
        """Reads to the end of a line that begins with `data`; returns what ends it."""
        while data and not data.endswith(b"\n"):
            data = self._read_line()
        return data[-1:]

    def _read_line(self) -> bytes:
        return self._advanced(lambda: self._text.readline(MAX_LINE_BYTES + 1))

    def _read(self, size: int) -> bytes:
        return self._advanced(lambda: self._text.read(size))

    def _advanced(self, read: Callable[[], bytes]) -> bytes:
        with _telling_of_damage(self._path):
            data = read()
        self._place = self._place.after(data)
        return data


@contextmanager
def _telling_of_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except damages(path) as error:
        raise InvalidArgument(f"{path} is damaged: {error}") from error


def _without_end(data: bytes) -> tuple[bytes, bytes]:
    text = data.removesuffix(b"\n")
    if len(text) < len(data):
        text = text.removesuffix(b"\r")
    return text, data[len(text) :]


def _text_size(path: Path) -> int:
    """Bytes of text; only reading a compressed file tells."""
    if not is_compressed(path):
        return path.stat().st_size
    with path.open("rb") as raw, _telling_of_damage(path):
        text, size = reader_of(raw, path), 0
        while chunk := text.read(_CHUNK_BYTES):
            size += len(chunk)
        return size
