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


class Ancestry:
    """What is shared by the rows of each sentence; `beam_size` rows each."""

    def __init__(self, max_sentences: int, beam_size: int) -> None:
        self._beams = np.arange(beam_size)
        # (sentences, beams, beams): leading positions that two rows have in common; on the
        # diagonal, all that are in use.
        self._shared = np.zeros((max_sentences, beam_size, beam_size), np.int64)

    def append(self, first: int, count: int) -> None:
        """Sentences from `first` on start with an empty past."""
        self._shared[first : first + count] = 0

    def step(self, positions: npt.NDArray[np.int32]) -> None:
        """Every row gets its own entry at its position; positions (sentences * beams,)."""
        used = positions.reshape(-1, len(self._beams)) + 1
        self._shared[: len(used), self._beams, self._beams] = used

    def reorder(self, rows: Indices) -> Copies:
        """Row i continues row `rows[i]`; returns what has to be copied for that."""
        beam_size = len(self._beams)
        parents = rows.reshape(-1, beam_size)
        sentences = parents[:, 0] // beam_size
        parents = parents - sentences[:, None] * beam_size
        starts = self._shared[sentences[:, None], self._beams, parents]
        starts[sentences != np.arange(len(sentences))] = 0  # the place of another sentence
        used = self._shared[sentences, 0, 0]
        self._shared[: len(sentences)] = self._shared[
            sentences[:, None, None], parents[:, :, None], parents[:, None, :]
        ]
        return _copies(rows, starts.ravel(), (used[:, None] - starts).ravel())


def _copies(rows: Indices, starts: Indices, counts: Indices) -> Copies:
    """Of row `rows[i]` to row i, `counts[i]` positions from `starts[i]` on."""
    to = np.repeat(np.arange(len(rows)), counts)
    offsets: Indices = starts - (np.cumsum(counts) - counts)
    return Copies(to, rows[to], np.arange(len(to)) + offsets[to])
