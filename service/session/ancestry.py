"""How much of their past the beams of a sentence still share, so that little is copied.

Beams that survive mostly descend from one beam a few tokens ago. When a row is to continue another
one of its sentence, the two caches are equal up to where they parted, and only the rest is copied:

    row 0   the cat sat on        shared[0, 1] = 2: rows 0 and 1 parted after `the cat`
    row 1   the cat is  on
    row 1 continues row 0:        copy positions 2 and 3 of row 0, not 0 and 1
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int64]


class Copies(NamedTuple):
    """Position `places[i]` of row `to[i]` becomes that of row `origin[i]`, all at once."""

    to: Indices
    origin: Indices
    places: Indices

    def cells(self, num_parts: int, extent: int) -> tuple[Indices, Indices]:
        """Where they go and come from in a tensor (rows, parts, extent), seen as one axis."""
        parts = self.places[:, None] + np.arange(0, num_parts * extent, extent)
        to, origin = (
            (parts + (rows * (num_parts * extent))[:, None]).ravel()
            for rows in (self.to, self.origin)
        )
        return to, origin


class Ancestry:
    """What is shared by the rows of each sentence; `beam_size` rows each."""

    def __init__(self, max_sentences: int, beam_size: int) -> None:
        self._beams = np.arange(beam_size)
        self._sentences = np.arange(max_sentences)
        # (sentences, beams, beams): leading positions that two rows have in common
        self._shared = np.zeros((max_sentences, beam_size, beam_size), np.int64)
        # (sentences, beams): of a row with itself, a view
        self._own = np.einsum("sbb->sb", self._shared)

    def append(self, first: int, count: int) -> None:
        """Sentences from `first` on start with an empty past."""
        self._shared[first : first + count] = 0

    def reorder(self, rows: Indices, used: Indices) -> Copies:
        """Row i continues row `rows[i]`; returns what has to be copied for that.

        used (sentences,): positions that the rows of each sentence have come to, before it.
        """
        parents = rows.reshape(-1, len(self._beams))
        sentences = parents[:, 0] // len(self._beams)
        parents = parents - sentences[:, None] * len(self._beams)
        self._own[: len(used)] = used[:, None]
        starts = self._shared[sentences[:, None], self._beams, parents]
        starts[sentences != self._sentences[: len(sentences)]] = 0  # the place of another sentence
        self._shared[: len(sentences)] = self._shared[
            sentences[:, None, None], parents[:, :, None], parents[:, None, :]
        ]
        ends = used[sentences][:, None, None]
        places = np.arange(used.max())
        is_missing = (places >= starts[:, :, None]) & (places < ends)
        to, where = is_missing.reshape(len(rows), -1).nonzero()
        return Copies(to, rows[to], where)
