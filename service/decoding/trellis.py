"""The tokens, back-pointers and attention of all live beams.

Nothing is copied when beams are reordered: each step writes one cell per beam that points to the
beam it continues, and a hypothesis is read backwards once it has ended. Sentences keep their slot
for life, wherever their rows move.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from service.decoding.search import Candidates
from service.decoding.slots import grown

_CELL: Final = np.dtype([("token", np.int32), ("log_prob", np.float32), ("parent", np.int8)])


class Trellis:
    """Cells (slot, position, beam), attention (slot, position, beam, source), and that of heads
    (slot, position, beam, heads, source).
    """

    def __init__(self, beam_size: int) -> None:
        self._beam_size = beam_size
        self._cells = np.empty((0, 0, beam_size), _CELL)
        # One opaque element for all beams of a step: numpy writes these fastest.
        self._column = np.dtype((np.void, beam_size * _CELL.itemsize))
        self._attention = np.empty((0, 0, beam_size, 0), np.float32)
        self._heads = np.empty((0, 0, beam_size, 0, 0), np.float32)
        self._free: list[int] = []

    def acquire(self, max_length: int, attention_width: int) -> int:
        """A slot for a sentence of at most `max_length` tokens; width 0 stores no attention."""
        if not self._free:
            slots = len(self._cells)
            self._cells = grown(self._cells, (slots + 1, 0, 0))
            self._free = list(range(slots, len(self._cells)))
        if max_length > self._cells.shape[1]:
            self._cells = grown(self._cells, (0, max_length, 0))
        if attention_width:
            needed = (len(self._cells), max_length, 0, attention_width)
            self._attention = grown(self._attention, needed)
        return self._free.pop()

    def release(self, slot: int) -> None:
        self._free.append(slot)

    def record(
        self, slots: NDArray[np.intp], positions: NDArray[np.int32], live: Candidates
    ) -> None:
        """Store the live beams that each sentence has after the step at its position."""
        cells = np.empty(live.tokens.shape, _CELL)
        cells["token"] = live.tokens
        cells["log_prob"] = live.log_probs
        if self._beam_size > 1:
            cells["parent"] = live.parents
        self._cells.view(self._column)[slots, positions] = cells.view(self._column)

    def record_attention(
        self,
        slots: NDArray[np.intp],
        positions: NDArray[np.int32],
        attention: NDArray[np.float32],
    ) -> None:
        """Store what each beam attended to in the step at its position; (slots, W, source)."""
        width = min(attention.shape[2], self._attention.shape[3])
        self._attention[slots, positions, :, :width] = attention[:, :, :width]

    def record_heads(
        self,
        slots: NDArray[np.intp],
        positions: NDArray[np.int32],
        heads: NDArray[np.float32],
    ) -> None:
        """The same for each head; (slots, W, heads, source)."""
        _, _, num_heads, width = heads.shape
        needed = (int(slots.max()) + 1, int(positions.max()) + 1, 0, num_heads, width)
        self._heads = grown(self._heads, needed)
        self._heads[slots, positions, :, :num_heads, :width] = heads

    def trace(self, slot: int, position: int, beam: int) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """Follow the back-pointers from `beam` of the row at `position` to the first token.

        Returns the cells of its tokens, (position,), and the beams that predicted them and the
        next token, (position + 1,).
        """
        if self._beam_size == 1:
            return self._cells[slot, :position, 0], np.zeros(position + 1, np.intp)
        beams = [beam]
        for parents in self._cells["parent"][slot, :position].tolist()[::-1]:
            beams.append(parents[beams[-1]])
        path = np.array(beams[::-1])
        return self._cells[slot, np.arange(position), path[1:]], path

    def attention(
        self, slot: int, beams: NDArray[np.intp], source_length: int
    ) -> NDArray[np.float32]:
        """What the tokens predicted by `beams`, one per position from 0, attended to."""
        return self._attention[slot, np.arange(len(beams)), beams, :source_length]

    def heads(self, slot: int, beams: NDArray[np.intp], source_length: int) -> NDArray[np.float32]:
        """The same for each head, (heads, len(beams), source_length)."""
        by_token = self._heads[slot, np.arange(len(beams)), beams, :, :source_length]
        return np.ascontiguousarray(by_token.swapaxes(0, 1))
