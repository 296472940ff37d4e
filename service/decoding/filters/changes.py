"""Filters that rewrite log-probabilities, and prefixes: see `DecodingOptions` for the options."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.decoding.filters.base import NO_TOKEN, Columns, Past, Rows
from service.decoding.filters.tables import Tables
from service.decoding.options import DecodingOptions
from service.decoding.slots import PerSlot


class Fixed(NamedTuple):
    """Row `rows[i]` goes on with `tokens[i]` and nothing else, at `log_probs[i]`."""

    rows: Rows
    tokens: NDArray[np.int64]
    log_probs: NDArray[np.float32]


class RepetitionPenalty(Tables):
    """`repetition_penalty`."""

    # A row has mostly said several of its likeliest tokens, and a penalised one may stay the best.
    num_more = 4
    reads_history = True

    def __init__(self) -> None:
        self._factors = PerSlot(np.float32, fill=1)
        super().__init__(self._factors)

    def asks(self, options: DecodingOptions) -> bool:
        return options.repetition_penalty != 1

    def join(self, slot: int, options: DecodingOptions, source_length: int) -> None:
        self._factors.put(slot, options.repetition_penalty)

    def change(self, past: Past, columns: Columns) -> None:
        """A token that was said twice is penalised once."""
        factors, said = self._factors[past.slots_of_rows], past.said
        if columns.ids is None:
            rows, when = ((said != NO_TOKEN) & (factors[:, None] != 1)).nonzero()
            tokens = said[rows, when]
            # All are read before any is written.
            columns.change()[rows, tokens] = columns.log_probs[rows, tokens] * factors[rows]
            return
        was_said = (columns.ids[:, :, None] == said[:, None]).any(axis=2)
        rows, where = was_said.nonzero()
        if len(rows):
            columns.change()[rows, where] *= factors[rows]


class _Prefixes(Tables):
    """The ids that sentences are to begin with, and which of them come next."""

    def __init__(self, *tables: PerSlot[np.float64]) -> None:
        self._ids = PerSlot(np.int64, 1, fill=NO_TOKEN)
        self._lengths = PerSlot(np.int64)
        super().__init__(self._ids, self._lengths, *tables)

    def _put(self, slot: int, ids: tuple[int, ...]) -> None:
        self._ids.put(slot, ids)
        self._lengths.put(slot, len(ids))

    def _next(self, past: Past) -> tuple[Rows, NDArray[np.int64]]:
        """The rows of the sentences that aren't through theirs, and the token of each."""
        (asking,) = (past.positions < self._lengths[past.slots]).nonzero()
        tokens = self._ids.rows[past.slots[asking], past.positions[asking]]
        return past.rows_of(asking), np.repeat(tokens, past.beam_size)

    def _agree(self, past: Past, rows: Rows) -> NDArray[np.bool_]:
        """Which of these rows have said what they were to say, and nothing else."""
        sentences = rows // past.beam_size
        said, ids = past.said[rows], self._ids[past.slots[sentences]]
        width = min(said.shape[1], ids.shape[1])
        is_to_come = np.arange(width) >= past.positions[sentences, None]
        agrees: NDArray[np.bool_] = (said[:, :width] == ids[:, :width]) | is_to_come
        everywhere: NDArray[np.bool_] = np.logical_and.reduce(agrees, axis=1)
        return everywhere


class PrefixBias(_Prefixes):
    """`prefix_bias_beta`: as in ctranslate2, but each beam goes by what it said itself."""

    num_more = 0
    reads_history = True

    def __init__(self) -> None:
        # In float32 the least betas would be 0 and the greatest 1, whose logarithms are infinite.
        self._betas = PerSlot(np.float64)
        super().__init__(self._betas)

    def asks(self, options: DecodingOptions) -> bool:
        return options.prefix_bias_beta > 0

    def join(self, slot: int, options: DecodingOptions, source_length: int) -> None:
        self._put(slot, options.prefix if options.prefix_bias_beta else ())
        self._betas.put(slot, options.prefix_bias_beta)

    def change(self, past: Past, columns: Columns) -> None:
        """Columns are the whole vocabulary."""
        rows, tokens = self._next(past)
        agree = self._agree(past, rows)
        rows, tokens = rows[agree], tokens[agree]
        if not len(rows):
            return
        betas = self._betas[past.slots[rows // past.beam_size]]
        log_probs = columns.change()
        log_probs[rows] += np.log1p(-betas)[:, None]
        log_probs[rows, tokens] = np.logaddexp(log_probs[rows, tokens], np.log(betas))


class HardPrefix(_Prefixes):
    """`prefix`: nothing else can follow, at the model's own log-probability."""

    def asks(self, options: DecodingOptions) -> bool:
        return bool(options.prefix) and not options.prefix_bias_beta

    def join(self, slot: int, options: DecodingOptions, source_length: int) -> None:
        self._put(slot, () if options.prefix_bias_beta else options.prefix)

    def fixed(self, past: Past, columns: Columns) -> Fixed:
        """Columns are the whole vocabulary."""
        rows, tokens = self._next(past)
        return Fixed(rows, tokens, columns.raw[rows, tokens])


class Alternatives(Tables):
    """`return_alternatives`: the tokens after the prefix compete, the beams after them don't.

    W = 3, no prefix:      step 0              step 1                   later
                           live 0 ─┬─ The      live 0 ─── The cat       each beam goes on
                                   ├─ A        live 1 ─── A cat         with its own best
                                   └─ This     live 2 ─── This is       token alone
    """

    num_more = 1
    reads_history = False

    def __init__(self, eos_id: int) -> None:
        self._eos_id = eos_id
        self._positions = PerSlot(np.int64, fill=np.iinfo(np.int64).max)
        self._least = PerSlot(np.float32)
        super().__init__(self._positions, self._least)

    def asks(self, options: DecodingOptions) -> bool:
        return options.return_alternatives

    def join(self, slot: int, options: DecodingOptions, source_length: int) -> None:
        asked = options.return_alternatives
        self._positions.put(slot, len(options.prefix) if asked else np.iinfo(np.int64).max)
        self._least.put(slot, options.min_alternative_prob)

    def change(self, past: Past, columns: Columns) -> None:
        """An end is no alternative."""
        (here,) = (past.positions == self._positions[past.slots]).nonzero()
        rows = past.rows_of(here)
        columns.forbid(rows, np.full(len(rows), self._eos_id))

    def settle(self, past: Past, log_probs: NDArray[np.float32]) -> None:
        """Forbid all that may not go on, of what was found best; (rows, columns), descending."""
        where = self._positions[past.slots]
        rows = past.rows_of((past.positions == where).nonzero()[0])
        least = self._least[past.slots[rows // past.beam_size]][:, None]
        log_probs[rows] = np.where(np.exp(log_probs[rows]) < least, -np.inf, log_probs[rows])
        log_probs[past.rows_of((past.positions > where).nonzero()[0]), 1:] = -np.inf
