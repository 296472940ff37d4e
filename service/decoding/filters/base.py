"""What a filter sees and what it must say."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from service.decoding.options import DecodingOptions

Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Past:
    """What was said so far by some sentences; row i belongs to sentence `i // beam_size` of them.

    slots      (sentences,) where the filters keep what a sentence asked for
    positions  (sentences,) of the token that comes next: so many were said
    history    (rows, at least the longest position) int32, what each row said; then anything
    """

    slots: NDArray[np.intp]
    positions: NDArray[np.int32]
    history: NDArray[np.int32]
    beam_size: int

    def rows_of(self, sentences: Rows) -> Rows:
        """All rows of some sentences, (sentences * beam_size,)."""
        return (sentences[:, None] * self.beam_size + np.arange(self.beam_size)).ravel()

    @property
    def slots_of_rows(self) -> NDArray[np.intp]:
        return np.repeat(self.slots, self.beam_size)

    def was_said(self) -> NDArray[np.bool_]:
        """Which entries of the history are tokens, (rows, length)."""
        ends = np.repeat(self.positions, self.beam_size)
        return np.arange(self.history.shape[1]) < ends[:, None]


class Bans(NamedTuple):
    """Token `tokens[i]` may not follow row `rows[i]`."""

    rows: Rows
    tokens: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """What may follow the rows of a `Past`, for filters to rewrite in place.

    log_probs  (rows, columns) float32; -inf can't follow
    raw        the model's own, before any filter
    ids        (rows, columns) of the tokens, or None where column i is token i
    """

    log_probs: NDArray[np.float32]
    raw: NDArray[np.float32]
    ids: NDArray[np.int64] | None = None

    def places(self, rows: Rows, tokens: NDArray[Any]) -> tuple[Rows, Rows]:
        """Where token `tokens[i]` stands in row `rows[i]`, if it does: rows and columns."""
        if self.ids is None:
            return rows, tokens
        pairs, columns = (self.ids[rows] == tokens[:, None]).nonzero()
        return rows[pairs], columns


class Filter(Protocol):
    """All filters are told what a newcomer asks for."""

    def join(self, slot: int, options: DecodingOptions, source_length: int) -> bool:
        """Remember it for as long as the slot is the newcomer's; whether it asks for anything."""


class Ban(Filter, Protocol):
    """Forbids tokens."""

    def bans(self, past: Past) -> Bans:
        """What is forbidden next; pairs may come twice."""


class Change(Filter, Protocol):
    """Rewrites log-probabilities; of those that see candidates only, none ever raises one."""

    def change(self, past: Past, columns: Columns) -> None:
        """Rewrite `columns.log_probs`."""
