"""The file behind a shortlist: which target pieces each source piece may become.

Owns the format of `shortlist.npz`. Written by export, which aligns the training data; read by the
session, which draws up each sentence's list.
"""

import io
import zipfile
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from service.errors import BundleError

SHORTLIST_NAME = "shortlist.npz"
MAX_LEXICON_BYTES = 2**28  # unpacked; a file of a few kilobytes could hold any number of zeros

Ids = npt.NDArray[np.int32]

# What zip, its compression and numpy say of a file that is none of theirs.
_UNREADABLE = (
    KeyError,
    ValueError,
    OSError,
    EOFError,
    MemoryError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)


@dataclass(frozen=True, slots=True, eq=False)
class Lexicon:
    """Target pieces by source piece; all arrays hold ids of the one vocabulary.

    common   (C,) ascending: what every sentence may use
    offsets  (vocabulary + 1,): `words[offsets[s] : offsets[s + 1]]` are the candidates of source
             piece s, best first
    words    (n,), none of which is common
    """

    common: Ids
    offsets: Ids
    words: Ids

    @property
    def vocabulary_size(self) -> int:
        return len(self.offsets) - 1

    def to_bytes(self) -> bytes:
        """The same bytes for the same lexicon."""
        file = io.BytesIO()
        np.savez_compressed(file, common=self.common, offsets=self.offsets, words=self.words)
        return file.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes, vocabulary_size: int) -> "Lexicon":
        """Raises BundleError for what is no lexicon of a vocabulary of this size."""
        try:
            _check_size(data)
            with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
                lexicon = cls(arrays["common"], arrays["offsets"], arrays["words"])
        except _UNREADABLE as exc:
            raise BundleError(SHORTLIST_NAME, [f"can't be read: {exc}"]) from exc
        if faults := lexicon._faults(vocabulary_size):
            raise BundleError(SHORTLIST_NAME, faults)
        return lexicon

    def _faults(self, vocabulary_size: int) -> list[str]:
        arrays: dict[str, npt.NDArray[Any]] = {
            name: getattr(self, name) for name in ("common", "offsets", "words")
        }
        for name, array in arrays.items():
            if not isinstance(array, np.ndarray):
                return [f"{name} is no array"]
            if array.ndim != 1 or array.dtype != np.int32:
                return [f"{name} has shape {array.shape}, {array.dtype}; must be a list of int32"]
        if self.vocabulary_size != vocabulary_size:
            return [f"is for {self.vocabulary_size} pieces, the vocabulary has {vocabulary_size}"]
        ends = self.offsets[0] == 0 and self.offsets[-1] == len(self.words)
        if not ends or (np.diff(self.offsets) < 0).any():
            return ["offsets must rise from 0 to the number of words"]
        everything = np.concatenate([self.common, self.words])
        if not len(self.common) or everything.min() < 0 or everything.max() >= vocabulary_size:
            return ["ids must be of the vocabulary, and some must be common"]
        return []


def _check_size(data: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        unpacked = sum(entry.file_size for entry in archive.infolist())
    if unpacked > MAX_LEXICON_BYTES:
        raise ValueError(f"has {unpacked} bytes unpacked, at most {MAX_LEXICON_BYTES} are read")
