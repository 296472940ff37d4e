"""What a filter sees and what it must say."""

from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from service.decoding.options import DecodingOptions
from service.decoding.slots import PerSlot

NO_TOKEN: Final = -1
# What a row without a past said: no filter looks for it.
_NOTHING: Final = np.int32(-2)

Rows = NDArray[np.intp]


class Past:
    """What was said so far by some sentences; row i belongs to sentence `i // beam_size` of them.

    slots      (sentences,) where the filters keep what a sentence asked for
    positions  (sentences,) of the token that comes next: so many were said
    """

    def __init__(
        self,
        slots: NDArray[np.intp],
        positions: NDArray[np.int32],
        history: PerSlot[np.int32],
        beam_size: int,
    ) -> None:
        self.slots = slots
        self.positions = positions
        self.beam_size = beam_size
        self._history = history

    def rows_of(self, sentences: Rows) -> Rows:
        """All rows of some sentences, (sentences * beam_size,)."""
        if self.beam_size == 1:
            return sentences
        return (sentences[:, None] * self.beam_size + np.arange(self.beam_size)).ravel()

    @cached_property
    def slots_of_rows(self) -> NDArray[np.intp]:
        return self._of_rows(self.slots)

    @cached_property
    def said(self) -> NDArray[np.int32]:
        """What each row said, `NO_TOKEN` behind it; (rows, at least the longest position)."""
        # At least one place, for filters to look at and ignore.
        said = self._history.rows[self.slots, :, : max(1, int(self.positions.max()))]
        return said.reshape(-1, said.shape[2])

    def last(self, back: int) -> NDArray[np.int32]:
        """What each row said `back` tokens ago, (rows,): 1 is its last one."""
        places = self._positions_of_rows - back
        if places.min() >= 0:
            return self.said[self._every_row, places]
        return np.where(places >= 0, self.said[self._every_row, np.maximum(places, 0)], _NOTHING)

    @cached_property
    def _positions_of_rows(self) -> NDArray[np.int32]:
        return self._of_rows(self.positions)

    @cached_property
    def _every_row(self) -> Rows:
        return np.arange(len(self.said))

    def _of_rows(self, values: NDArray[Any]) -> NDArray[Any]:
        return values if self.beam_size == 1 else np.repeat(values, self.beam_size)


class Columns:
    """What may follow the rows of a `Past`, for filters to rewrite.

    raw        (rows, columns) float32, the model's own
    log_probs  what filters made of it; -inf can't follow
    ids        (rows, columns) of the tokens, or None where column i is token i
    """

    def __init__(self, raw: NDArray[np.float32], ids: NDArray[np.int64] | None = None) -> None:
        self.raw = raw
        self.ids = ids
        self.log_probs = raw

    @property
    def is_changed(self) -> bool:
        return self.log_probs is not self.raw

    def change(self) -> NDArray[np.float32]:
        """`log_probs` to write to; what is never written to is never copied."""
        if not self.is_changed:
            self.log_probs = self.raw.copy()
        return self.log_probs

    def places(self, rows: Rows, tokens: NDArray[Any]) -> tuple[Rows, Rows]:
        """Where token `tokens[i]` stands in row `rows[i]`, if it does: rows and columns."""
        if self.ids is None:
            return rows, tokens
        pairs, columns = (self.ids[rows] == tokens[:, None]).nonzero()
        return rows[pairs], columns

    def forbid(self, rows: Rows, tokens: NDArray[Any]) -> None:
        """Token `tokens[i]` may not follow row `rows[i]`; pairs may come twice."""
        if not len(rows):
            return
        rows, columns = self.places(rows, tokens)
        if len(rows):
            self.change()[rows, columns] = -np.inf


class Filter(Protocol):
    """What one option, or a few that belong together, comes to."""

    def asks(self, options: DecodingOptions) -> bool:
        """Whether a sentence with these options asks for it."""

    def reserve(self, num_slots: int) -> None:
        """Make room for so many slots, whose sentences don't ask for it."""

    def join(self, slot: int, options: DecodingOptions, source_length: int) -> None:
        """Remember what a newcomer asks for, be it nothing, for as long as the slot is its own."""


class Change(Filter, Protocol):
    """Rewrites log-probabilities; of those that see candidates only, none ever raises one.

    num_more       candidates that it mostly takes from a row at most: so many more are asked for
    reads_history  whether it looks at what was said
    """

    num_more: int
    reads_history: bool

    def change(self, past: Past, columns: Columns) -> None:
        """Rewrite `columns.change()`, or forbid tokens."""
