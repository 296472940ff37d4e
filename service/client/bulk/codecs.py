"""Plain, gzip and zstd files by their suffix, in any case: read as one stream, written in members.

A member (gzip) or frame (zstd) is complete in itself, and a file of several is one file to every
tool. So what was written up to the end of a member can be kept, and what follows cut off.
"""

import gzip
import io
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import BinaryIO, Protocol, cast

# What tools that compress for keeping use by default.
_GZIP_LEVEL = 6
# zlib's way to ask for a gzip header; it holds no time, so the same text is the same bytes.
_GZIP_WINDOW = 16 + zlib.MAX_WBITS


class Member(Protocol):
    """What turns text into the bytes of one member."""

    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


class _Plain:
    """Bytes as they are."""

    def compress(self, data: bytes) -> bytes:
        return data

    def flush(self) -> bytes:
        return b""


def reader_of(raw: BinaryIO, path: Path) -> BinaryIO:
    """The text in an opened file called `path`, all members one after another.

    Reading raises what `damages` lists if the file is damaged or ends too early.
    """
    is_empty = not raw.seek(0, io.SEEK_END)
    raw.seek(0)
    if is_empty or not is_compressed(path):
        return raw
    if _suffix(path) == ".gz":
        return cast(BinaryIO, gzip.GzipFile(fileobj=raw))
    return cast(BinaryIO, io.BufferedReader(_zstd().ZstdFile(raw), 1 << 17))


def member_maker(path: Path) -> Callable[[], Member]:
    """What makes members for a file called `path`."""
    return _MEMBERS.get(_suffix(path), _Plain)


def is_compressed(path: Path) -> bool:
    return _suffix(path) in _MEMBERS


def damages(path: Path) -> tuple[type[Exception], ...]:
    """What reading a compressed file raises if it isn't one, or not a whole one."""
    if _suffix(path) == ".gz":
        return EOFError, zlib.error, gzip.BadGzipFile
    return (EOFError, _zstd().ZstdError) if _suffix(path) == ".zst" else ()


def _suffix(path: Path) -> str:
    return path.suffix.lower()


def _gzip_member() -> Member:
    return zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)


def _zstd_member() -> Member:
    member: Member = _zstd().ZstdCompressor()
    return member


def _zstd() -> ModuleType:
    """The module of Python 3.14, or the same for older ones; loaded where it is needed."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd


_MEMBERS: dict[str, Callable[[], Member]] = {".gz": _gzip_member, ".zst": _zstd_member}
