"""Filters that rewrite log-probabilities: see `DecodingOptions` for what each option means."""

import numpy as np
from numpy.typing import NDArray

from service.decoding.filters.base import Bans, Columns, Past
from service.decoding.options import DecodingOptions
from service.decoding.slots import PerSlot

_NO_TOKEN = -1


class RepetitionPenalty:
    """`repetition_penalty`."""

    def __init__(self) -> None:
        self._factors = PerSlot(np.float32, fill=1)

    def join(self, slot: int, options: DecodingOptions, source_length: int) -> bool:
        self._factors.put(slot, options.repetition_penalty)
        return options.repetition_penalty != 1

    def change(self, past: Past, columns: Columns) -> None:
        factors = self._factors[past.slots_of_rows]
        rows, when = (past.was_said() & (factors[:, None] != 1)).nonzero()
        rows, where = columns.places(rows, past.history[rows, when])
        # Read before it is written: a token that was said twice is penalised once.
        columns.log_probs[rows, where] = columns.log_probs[rows, where] * factors[rows]


class SuppressedTokens:
    """`suppress_tokens`."""

    def __init__(self) -> None:
        # (slot, token), and one that nobody suppresses
        self._is_banned = PerSlot(np.bool_, 1, fill=False)

    def join(self, slot: int, options: DecodingOptions, source_length: int) -> bool:
        ids = options.suppress_tokens
        is_banned = np.zeros(max(ids, default=-1) + 2, np.bool_)
        is_banned[list(ids)] = True
        self._is_banned.put(slot, is_banned)
        return bool(ids)

    def change(self, past: Past, columns: Columns) -> None:
        slots = past.slots_of_rows
        if columns.ids is None:
            width = min(self._is_banned.rows.shape[1], columns.log_probs.shape[1])
            columns.log_probs[:, :width][self._is_banned[slots][:, :width]] = -np.inf
            return
        ids = np.minimum(columns.ids, self._is_banned.rows.shape[1] - 1)
        columns.log_probs[self._is_banned.rows[slots[:, None], ids]] = -np.inf


class _Prefixes:
    """The ids that sentences are to begin with, and which of them come next."""

    def __init__(self) -> None:
        self._ids = PerSlot(np.int64, 1, fill=_NO_TOKEN)
        self._lengths = PerSlot(np.int64)

    def put(self, slot: int, ids: tuple[int, ...]) -> None:
        self._ids.put(slot, ids)
        self._lengths.put(slot, len(ids))

    def next(self, past: Past) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """The rows of the sentences that aren't through theirs, and the token of each."""
        (asking,) = (past.positions < self._lengths[past.slots]).nonzero()
        tokens = self._ids.rows[past.slots[asking], past.positions[asking]]
        return past.rows_of(asking), np.repeat(tokens, past.beam_size)

    def agree(self, past: Past, rows: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which of these rows have said what they were to say, and nothing else."""
        sentences = rows // past.beam_size
        said, ids = past.history[rows], self._ids[past.slots[sentences]]
        width = min(said.shape[1], ids.shape[1])
        is_to_come = np.arange(width) >= past.positions[sentences, None]
        agrees: NDArray[np.bool_] = (said[:, :width] == ids[:, :width]) | is_to_come
        everywhere: NDArray[np.bool_] = np.logical_and.reduce(agrees, axis=1)
        return everywhere


class PrefixBias:
    """`prefix_bias_beta`: as in ctranslate2, but each beam goes by what it said itself."""

    def __init__(self) -> None:
        self._prefixes = _Prefixes()
        # In float32 the least betas would be 0 and the greatest 1, whose logarithms are infinite.
        self._betas = PerSlot(np.float64)

    def join(self, slot: int, options: DecodingOptions, source_length: int) -> bool:
        self._prefixes.put(slot, options.prefix if options.prefix_bias_beta else ())
        self._betas.put(slot, options.prefix_bias_beta)
        return options.prefix_bias_beta > 0

    def change(self, past: Past, columns: Columns) -> None:
        rows, tokens = self._prefixes.next(past)
        agree = self._prefixes.agree(past, rows)
        rows, tokens = rows[agree], tokens[agree]
        betas = self._betas[past.slots[rows // past.beam_size]]
        log_probs = columns.log_probs
        log_probs[rows] += np.log1p(-betas)[:, None]
        log_probs[rows, tokens] = np.logaddexp(log_probs[rows, tokens], np.log(betas))


class HardPrefix:
    """`prefix`: nothing else can follow, at the model's own log-probability."""

    def __init__(self) -> None:
        self._prefixes = _Prefixes()

    def join(self, slot: int, options: DecodingOptions, source_length: int) -> bool:
        prefix = () if options.prefix_bias_beta else options.prefix
        self._prefixes.put(slot, prefix)
        return bool(prefix)

    def change(self, past: Past, columns: Columns) -> None:
        rows, tokens = self._prefixes.next(past)
        columns.log_probs[rows] = -np.inf
        columns.log_probs[rows, tokens] = columns.raw[rows, tokens]


class Alternatives:
    """`return_alternatives`: the tokens after the prefix compete, the beams after them don't.

    W = 3, no prefix:      step 0              step 1                   later
                           live 0 ─┬─ The      live 0 ─── The cat       each beam goes on
                                   ├─ A        live 1 ─── A cat         with its own best
                                   └─ This     live 2 ─── This is       token alone
    """

    def __init__(self, eos_id: int) -> None:
        self._eos_id = eos_id
        self._positions = PerSlot(np.int64)
        self._least = PerSlot(np.float32)

    def join(self, slot: int, options: DecodingOptions, source_length: int) -> bool:
        asked = options.return_alternatives
        self._positions.put(slot, len(options.prefix) if asked else np.iinfo(np.int64).max)
        self._least.put(slot, options.min_alternative_prob)
        return asked

    def bans(self, past: Past) -> Bans:
        """An end is no alternative."""
        (here,) = (past.positions == self._positions[past.slots]).nonzero()
        rows = past.rows_of(here)
        return Bans(rows, np.full(len(rows), self._eos_id))

    def change(self, past: Past, columns: Columns) -> None:
        where, log_probs = self._positions[past.slots], columns.log_probs
        rows = past.rows_of((past.positions == where).nonzero()[0])
        least = self._least[past.slots[rows // past.beam_size]][:, None]
        log_probs[rows] = np.where(np.exp(log_probs[rows]) < least, -np.inf, log_probs[rows])
        rows = past.rows_of((past.positions > where).nonzero()[0])
        best = log_probs[rows].argmax(axis=1)
        kept = log_probs[rows, best]
        log_probs[rows] = -np.inf
        log_probs[rows, best] = kept
