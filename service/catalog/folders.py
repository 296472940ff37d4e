"""The folders of the models directory, as they lie there at one moment.

A folder is told from its successor by its manifest's content and its files' identity: it may be
replaced by a rename, through a symbolic link, or file by file, and may be seen while that goes on.
"""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from service.bundle.files import MANIFEST_NAME, MAX_MANIFEST_BYTES
from service.errors import ConfigError
from service.reading import read_regular

_DIGITS = re.compile(r"([0-9]+)")


@dataclass(frozen=True, slots=True)
class Stamp:
    """What changes when any file of a bundle does.

    manifest: its SHA-256, or that of nothing if it can't be read.
    files: name, device, inode, size and time of change of each.
    """

    manifest: bytes
    files: tuple[tuple[str, int, int, int, int], ...]


@dataclass(frozen=True, slots=True)
class Folder:
    """A subdirectory with a bundle, whole or not; `stamp` is None if it changed while looked at."""

    path: Path
    stamp: Stamp | None

    @property
    def name(self) -> str:
        return self.path.name

    @classmethod
    def at(cls, path: Path) -> "Folder":
        """The folder as it is now."""
        return cls(path, _stamp(path))


def bundle_folders(directory: Path) -> list[Path]:
    """The folders that hold a bundle, in natural order, `x-2` before `x-10`.

    Raises ConfigError if there is none.
    """
    if not directory.is_dir():
        raise ConfigError("models", [f"{directory} is not a directory"])
    # A name with a dot is one that is still being written, or that somebody put aside.
    folders = [path.parent for path in directory.glob(f"[!.]*/{MANIFEST_NAME}")]
    if not folders:
        raise ConfigError("models", [f"{directory} has no bundle; expected */bundle.json in it"])
    return sorted(folders, key=lambda path: (natural(path.name), path.name))


def look(directory: Path) -> list[Folder]:
    """`bundle_folders` with their stamps."""
    return [Folder.at(path) for path in bundle_folders(directory)]


def natural(name: str) -> tuple[str | int, ...]:
    """A key that sorts numbers in names by their value."""
    parts = enumerate(_DIGITS.split(name))
    return tuple(int(part) if index % 2 else part for index, part in parts)


def _stamp(path: Path) -> Stamp | None:
    try:
        manifest = _digest(path / MANIFEST_NAME)
        places = sorted([*path.glob("*.*"), *path.glob("*/*.onnx")])
        stats = [(str(place.relative_to(path)), place.lstat()) for place in places]
    except OSError:  # it changed while it was looked at
        return None
    files = ((name, s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns) for name, s in stats)
    return Stamp(manifest, tuple(files))


def _digest(manifest: Path) -> bytes:
    """SHA-256 of a file's beginning; of nothing if it is there and can't be read, say a pipe."""
    try:
        content = read_regular(manifest, MAX_MANIFEST_BYTES + 1)
    except FileNotFoundError:
        raise
    except OSError:
        content = b""
    return hashlib.sha256(content).digest()
