"""Drawing tokens: a sentence's random numbers are its own, so neighbours change nothing."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.decoding.filters.base import Columns, Past
from service.decoding.filters.changes import Fixed
from service.decoding.filters.columns import top_columns
from service.decoding.filters.tables import Tables
from service.decoding.options import DecodingOptions
from service.decoding.slots import PerSlot

# The largest top-k that is drawn from the model's candidates. More of them take the graph longer
# than a look at the whole vocabulary.
MAX_CANDIDATES: Final = 32
Weights = NDArray[np.float32]
_ALL: Final = np.iinfo(np.int64).max
# A token of so large a nucleus is drawn from everything, again if it isn't in it: most are.
_LARGE: Final = 0.5
_NUM_DRAWS: Final = 4
# Tokens that mostly hold a small nucleus: to sort all of them takes longer than a step.
_FEW: Final = 64
_BLOCK: Final = 64
# 1 / temperature at most, for 0 times it to stay 0.
_MAX_SCALE: Final = 1e30


class Sampling(Tables):
    """`sampling_temperature`, `sampling_top_k`, `sampling_top_p`, `sampling_seed`.

    The token at position i is where the i-th number of a counter-based generator (Philox,
    Salmon et al. 2011) keyed by the seed falls among the cumulated probabilities. It keeps the
    model's own log-probability. Who draws from a few asks for so many candidates; the others see
    the whole vocabulary. A sentence that draws nothing is one with a top-k of 1.
    """

    def __init__(self) -> None:
        self._scales = PerSlot(np.float32, fill=1)
        self._top_k = PerSlot(np.int64, fill=1)
        self._top_p = PerSlot(np.float64, fill=1)
        self._numbers = PerSlot(np.float64, 2)  # (slot, position, draw)
        super().__init__(self._scales, self._top_k, self._top_p, self._numbers)

    def asks(self, options: DecodingOptions) -> bool:
        return options.sampling_temperature > 0

    def join(self, slot: int, options: DecodingOptions, source_length: int) -> None:
        if not options.sampling_temperature:
            self._top_k.put(slot, 1)
            return
        self._scales.put(slot, min(1 / max(options.sampling_temperature, 1e-300), _MAX_SCALE))
        self._top_k.put(slot, min(options.sampling_top_k or _ALL, _ALL))
        self._top_p.put(slot, options.sampling_top_p)
        generator = np.random.Generator(np.random.Philox(key=options.sampling_seed))
        limit = options.length_limit(source_length)
        self._numbers.put(slot, generator.random((limit, _NUM_DRAWS + 1)))

    def num_candidates(self, past: Past) -> int:
        """How many the sentences choose from that draw from candidates."""
        return int(self._top_k[past.slots].max())

    def among(self, past: Past, log_probs: NDArray[np.float32]) -> NDArray[np.intp]:
        """The column that each row draws; (rows, columns), descending."""
        slots = past.slots
        best = log_probs[:, :1]
        highest = np.where(np.isfinite(best), best, 0)  # nothing may be left to draw from
        weights = np.exp((log_probs - highest) * self._scales[slots][:, None], dtype=np.float64)
        weights[np.arange(weights.shape[1]) >= self._top_k[slots][:, None]] = 0
        sums = weights.cumsum(axis=1)
        targets = self._top_p[slots] * sums[:, -1]
        # Those before which the others don't reach top-p yet.
        weights[sums - weights >= targets[:, None]] = 0
        sums = weights.cumsum(axis=1)
        # Who draws nothing may be further on than any number.
        places = np.minimum(past.positions, self._numbers.rows.shape[1] - 1)
        return _first_above(sums, self._numbers.rows[slots, places, 0] * sums[:, -1])

    def fixed(self, past: Past, columns: Columns) -> Fixed:
        """What each row draws from the whole vocabulary."""
        (rows,) = (self._top_k[past.slots] != 1).nonzero()  # a sample has one row
        is_every = len(rows) == len(past.slots)
        log_probs = columns.log_probs if is_every else columns.log_probs[rows]
        slots = past.slots[rows]
        weights = _weights(log_probs, self._scales[slots])
        numbers = self._numbers.rows[slots, past.positions[rows]]
        drawn = _sampled(weights, numbers, self._top_k[slots], self._top_p[slots])
        drawn = np.minimum(drawn, log_probs.shape[1] - 1)  # padding, if nothing is left
        return Fixed(rows, drawn, log_probs[np.arange(len(rows)), drawn])


def _weights(log_probs: NDArray[np.float32], scales: NDArray[np.float32]) -> Weights:
    """Of tokens, the likeliest 1, in whole blocks; (rows, columns)."""
    num_rows, size = log_probs.shape
    weights = np.zeros((num_rows, -(-size // _BLOCK) * _BLOCK), np.float32)
    some, highest = weights[:, :size], log_probs.max(axis=1, keepdims=True)
    highest[~np.isfinite(highest)] = 0  # nothing is left to draw from
    np.subtract(log_probs, highest, out=some)
    some *= scales[:, None]
    np.exp(some, out=some)
    return weights


def _sampled(
    weights: Weights,
    numbers: NDArray[np.float64],
    top_k: NDArray[np.int64],
    top_p: NDArray[np.float64],
) -> NDArray[np.intp]:
    """A column of each row; numbers (rows, draws), which are used up from the first on."""
    drawn = _drawn(weights, numbers[:, 0])
    is_cut = (top_k < weights.shape[1]) | (top_p < _LARGE)
    (again,) = (~is_cut & (top_p < 1)).nonzero()
    for draw in range(1, _NUM_DRAWS + 1):
        again = again[~_are_in_nucleus(weights[again], drawn[again], top_p[again])]
        if not len(again) or draw == _NUM_DRAWS:
            break
        drawn[again] = _drawn(weights[again], numbers[again, draw])
    cut = np.concatenate([is_cut.nonzero()[0], again])
    if len(cut):
        some = weights[cut]
        some[some < _least_weights(some, top_k[cut], top_p[cut])[:, None]] = 0
        drawn[cut] = _drawn(some, numbers[cut, _NUM_DRAWS])
    return drawn


def _are_in_nucleus(
    weights: Weights, drawn: NDArray[np.intp], top_p: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Whether what is likelier than each row's column doesn't hold top-p already, (rows,)."""
    own = weights[np.arange(len(weights)), drawn]
    is_likelier = (weights > own[:, None]).astype(np.float32)
    likelier = np.einsum("ij,ij->i", weights, is_likelier)
    is_in: NDArray[np.bool_] = likelier < top_p * np.einsum("ij->i", weights)
    return is_in


def _least_weights(
    weights: Weights, top_k: NDArray[np.int64], top_p: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The weight of the last token of each row that top-k and top-p leave, (rows,)."""
    width = weights.shape[1]
    least, rows = np.zeros(len(weights)), np.arange(len(weights))
    top_k = np.minimum(top_k, width)
    is_limited = top_k < width
    count = min(width, int(top_k[is_limited].max(initial=_FEW)))
    while len(rows):
        best = _descending(weights[rows], count)
        best[np.arange(count) >= top_k[rows, None]] = 0
        sums = best.cumsum(axis=1, dtype=np.float64)
        totals = np.where(is_limited[rows], sums[:, -1], weights[rows].sum(axis=1))
        targets = top_p[rows] * totals
        # Those before which the others don't reach top-p yet.
        is_in = (sums - best < targets[:, None]) & (best > 0)
        last = np.maximum(is_in.sum(axis=1) - 1, 0)
        least[rows] = best[np.arange(len(rows)), last]
        if count == width:
            break
        rows = rows[~is_limited[rows] & (sums[:, -1] < targets)]
        count = width
    return least


def _descending(weights: Weights, count: int) -> Weights:
    """The `count` greatest weights of each row."""
    if count < weights.shape[1]:
        return np.take_along_axis(weights, top_columns(weights, count), axis=1)
    ordered: Weights = -np.sort(-weights, axis=1)
    return ordered


def _drawn(weights: Weights, numbers: NDArray[np.float64]) -> NDArray[np.intp]:
    """The column in which each number, from 0 to below 1, falls; none of weight 0.

    First the block, then the column in it: so few sums are cumulated.
    """
    every = np.arange(len(weights))
    # Not -1, which has no meaning where no row draws.
    blocks = weights.reshape(len(weights), weights.shape[1] // _BLOCK, _BLOCK)
    sums = np.einsum("ijk->ij", blocks).cumsum(axis=1, dtype=np.float64)
    targets = numbers * sums[:, -1]
    which = _first_above(sums, targets)
    before = np.where(which > 0, sums[every, which - 1], 0)
    inside = blocks[every, which].cumsum(axis=1, dtype=np.float64)
    return which * _BLOCK + _first_above(inside, targets - before)


def _first_above(sums: NDArray[np.float64], targets: NDArray[np.float64]) -> NDArray[np.intp]:
    """The first column of each row whose sum, of all up to it, is above the target."""
    # Rounding may lift a target to the total, behind the last column.
    targets = np.minimum(targets, np.nextafter(sums[:, -1], 0))
    columns: NDArray[np.intp] = (sums <= targets[:, None]).sum(axis=1)
    last: NDArray[np.intp] = np.minimum(columns, sums.shape[1] - 1)
    return last
