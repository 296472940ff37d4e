"""Filters that forbid tokens: see `DecodingOptions` for what each option means."""

import numpy as np
from numpy.typing import NDArray

from service.decoding.filters.base import Bans, Past
from service.decoding.options import DecodingOptions
from service.decoding.slots import PerSlot

_NO_TOKEN = -1


class LeastLength:
    """`min_length`, `min_length_ratio`: no EOS before its time."""

    def __init__(self, eos_id: int) -> None:
        self._eos_id = eos_id
        self._lengths = PerSlot(np.int64)

    def join(self, slot: int, options: DecodingOptions, source_length: int) -> bool:
        self._lengths.put(slot, options.least_length(source_length))
        return options.min_length > 0 or options.min_length_ratio > 0

    def bans(self, past: Past) -> Bans:
        (short,) = (past.positions + 1 < self._lengths[past.slots]).nonzero()
        rows = past.rows_of(short)
        return Bans(rows, np.full(len(rows), self._eos_id))


class SuppressedSequences:
    """`suppress_sequences`: the last id of one may not follow its others."""

    def __init__(self) -> None:
        self._lasts = PerSlot(np.int64, 1, fill=_NO_TOKEN)
        # (slot, sequence, place before the last one, counted backwards)
        self._heads = PerSlot(np.int64, 2, fill=_NO_TOKEN)

    def join(self, slot: int, options: DecodingOptions, source_length: int) -> bool:
        sequences = options.suppress_sequences
        longest = max(map(len, sequences), default=1)
        heads = np.full((len(sequences), longest - 1), _NO_TOKEN)
        for head, sequence in zip(heads, sequences, strict=True):
            head[: len(sequence) - 1] = sequence[-2::-1]
        self._lasts.put(slot, [sequence[-1] for sequence in sequences])
        self._heads.put(slot, heads)
        return bool(sequences)

    def bans(self, past: Past) -> Bans:
        (asking,) = (self._lasts[past.slots] != _NO_TOKEN).any(axis=1).nonzero()
        lasts, heads = (table[past.slots[asking]] for table in (self._lasts, self._heads))
        lasts, heads = (np.repeat(each, past.beam_size, axis=0) for each in (lasts, heads))
        rows = past.rows_of(asking)
        agrees = lasts != _NO_TOKEN
        for back in range(heads.shape[2]):
            wanted = heads[:, :, back]
            agrees &= (wanted == _NO_TOKEN) | (wanted == _said(past, rows, back)[:, None])
        where, which = agrees.nonzero()
        return Bans(rows[where], lasts[where, which])


class NoRepeatNgram:
    """`no_repeat_ngram_size`: what followed the last n - 1 tokens before may not follow again."""

    def __init__(self) -> None:
        self._sizes = PerSlot(np.int64)

    def join(self, slot: int, options: DecodingOptions, source_length: int) -> bool:
        self._sizes.put(slot, options.no_repeat_ngram_size)
        return options.no_repeat_ngram_size > 0

    def bans(self, past: Past) -> Bans:
        """Every place whose n - 1 tokens before it are also the last ones:

        n = 3    the cat sat . the cat   ->  `sat`, in place 2, may not come again
        """
        sizes = self._sizes[past.slots]
        (asking,) = ((sizes > 0) & (past.positions >= sizes)).nonzero()
        rows, sizes = past.rows_of(asking), np.repeat(sizes[asking], past.beam_size)
        said = past.history[rows]
        agrees = past.was_said()[rows] & (np.arange(said.shape[1]) >= sizes[:, None] - 1)
        for back in range(1, int(sizes.max(initial=1))):
            agrees[:, back:] &= (said[:, :-back] == _said(past, rows, back - 1)[:, None]) | (
                back >= sizes[:, None]
            )
        where, places = agrees.nonzero()
        return Bans(rows[where], said[where, places].astype(np.int64))


def _said(past: Past, rows: NDArray[np.intp], back: int) -> NDArray[np.int32]:
    """What rows said `back` tokens before the last one; `_NO_TOKEN - 1` if nothing."""
    places = past.positions[rows // past.beam_size] - 1 - back
    said = past.history[rows, np.maximum(places, 0)]
    return np.where(places >= 0, said, np.int32(_NO_TOKEN - 1))
