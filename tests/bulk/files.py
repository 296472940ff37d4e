"""Files that are compressed by other hands than the service's, and read by them."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from backports import zstd

_Change: TypeAlias = Callable[[bytes], bytes]
SUFFIXES = ("", ".gz", ".zst")


def put(path: Path, text: bytes) -> Path:
    """Writes a file, compressed as its name says, in two members if it can have them."""
    half = len(text) // 2
    changes: dict[str, _Change] = {".gz": gzip.compress, ".zst": zstd.compress}
    compress = changes.get(path.suffix.lower(), bytes)
    path.write_bytes(compress(text[:half]) + compress(text[half:]))
    return path


def text_of(path: Path) -> bytes:
    """What is in a file, decompressed as its name says."""
    data = path.read_bytes()
    changes: dict[str, _Change] = {".gz": gzip.decompress, ".zst": zstd.decompress}
    return changes.get(path.suffix.lower(), bytes)(data)
