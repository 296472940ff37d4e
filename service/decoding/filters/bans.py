"""Filters that forbid tokens: see `DecodingOptions` for what each option means."""

import numpy as np

from service.decoding.filters.base import NO_TOKEN, Columns, Past, Rows
from service.decoding.filters.tables import Tables
from service.decoding.options import DecodingOptions
from service.decoding.slots import PerSlot


class LeastLength(Tables):
    """`min_length`, `min_length_ratio`: no EOS before its time."""

    num_more = 1
    reads_history = False

    def __init__(self, eos_id: int) -> None:
        self._eos_id = eos_id
        self._lengths = PerSlot(np.int64)
        super().__init__(self._lengths)

    def asks(self, options: DecodingOptions) -> bool:
        return options.min_length > 0 or options.min_length_ratio > 0

    def join(self, slot: int, options: DecodingOptions, source_length: int) -> None:
        self._lengths.put(slot, options.least_length(source_length))

    def change(self, past: Past, columns: Columns) -> None:
        (short,) = (past.positions + 1 < self._lengths[past.slots]).nonzero()
        rows = past.rows_of(short)
        columns.forbid(rows, np.full(len(rows), self._eos_id))


class SuppressedTokens(Tables):
    """`suppress_tokens`."""

    num_more = 2
    reads_history = False

    def __init__(self) -> None:
        # (slot, token), and one that nobody suppresses
        self._is_banned = PerSlot(np.bool_, 1, fill=False)
        super().__init__(self._is_banned)

    def asks(self, options: DecodingOptions) -> bool:
        return bool(options.suppress_tokens)

    def join(self, slot: int, options: DecodingOptions, source_length: int) -> None:
        ids = options.suppress_tokens
        is_banned = np.zeros(max(ids, default=-1) + 2, np.bool_)
        is_banned[list(ids)] = True
        self._is_banned.put(slot, is_banned)

    def change(self, past: Past, columns: Columns) -> None:
        slots, table = past.slots_of_rows, self._is_banned.rows
        if columns.ids is None:
            width = min(table.shape[1], columns.raw.shape[1])
            columns.change()[:, :width][table[slots, :width]] = -np.inf
            return
        is_banned = table[slots[:, None], np.minimum(columns.ids, table.shape[1] - 1)]
        if is_banned.any():
            columns.change()[is_banned] = -np.inf


class SuppressedSequences(Tables):
    """`suppress_sequences`: the last id of one may not follow its others."""

    num_more = 2
    reads_history = True

    def __init__(self) -> None:
        self._lasts = PerSlot(np.int64, 1, fill=NO_TOKEN)
        # (slot, sequence, place before the last one, counted backwards)
        self._heads = PerSlot(np.int64, 2, fill=NO_TOKEN)
        super().__init__(self._lasts, self._heads)

    def asks(self, options: DecodingOptions) -> bool:
        return bool(options.suppress_sequences)

    def join(self, slot: int, options: DecodingOptions, source_length: int) -> None:
        sequences = options.suppress_sequences
        longest = max(map(len, sequences), default=1)
        heads = np.full((len(sequences), longest - 1), NO_TOKEN)
        for head, sequence in zip(heads, sequences, strict=True):
            head[: len(sequence) - 1] = sequence[-2::-1]
        self._lasts.put(slot, [sequence[-1] for sequence in sequences])
        self._heads.put(slot, heads)

    def change(self, past: Past, columns: Columns) -> None:
        lasts, heads = self._lasts[past.slots_of_rows], self._heads[past.slots_of_rows]
        # A row of the table may have more columns than any sentence of this step has sequences.
        width = min(lasts.shape[1], heads.shape[1])
        lasts = lasts[:, :width]
        agrees = lasts != NO_TOKEN
        for place in range(heads.shape[2]):
            wanted = heads[:, :width, place]
            agrees &= (wanted == past.last(place + 1)[:, None]) | (wanted == NO_TOKEN)
        rows, which = agrees.nonzero()
        columns.forbid(rows, lasts[rows, which])


class NoRepeatNgram(Tables):
    """`no_repeat_ngram_size`: what followed the last n - 1 tokens before may not follow again."""

    num_more = 2
    reads_history = True

    def __init__(self) -> None:
        self._sizes = PerSlot(np.int64)
        super().__init__(self._sizes)

    def asks(self, options: DecodingOptions) -> bool:
        return options.no_repeat_ngram_size > 0

    def join(self, slot: int, options: DecodingOptions, source_length: int) -> None:
        self._sizes.put(slot, options.no_repeat_ngram_size)

    def change(self, past: Past, columns: Columns) -> None:
        sizes = self._sizes[past.slots_of_rows]
        for size in set(sizes.tolist()) - {0}:
            (rows,) = (sizes == size).nonzero()
            self._forbid(past, columns, rows, size)

    def _forbid(self, past: Past, columns: Columns, rows: Rows, size: int) -> None:
        """Every token whose n - 1 tokens before it are also the last ones:

        n = 3    the cat sat . the cat   ->  `sat` may not come again
        """
        said = past.said[rows]
        num_places = said.shape[1] - size + 1
        if num_places < 1:
            return
        followers = said[:, size - 1 :]
        agrees = followers != NO_TOKEN
        for back in range(1, size):
            before = said[:, size - 1 - back :][:, :num_places]
            agrees &= before == past.last(back)[rows, None]
        which, places = agrees.nonzero()
        columns.forbid(rows[which], followers[which, places])
