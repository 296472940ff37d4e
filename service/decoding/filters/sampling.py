"""Drawing tokens: a sentence's random numbers are its own, so neighbours change nothing."""

import numpy as np
from numpy.typing import NDArray

from service.decoding.filters.base import Columns, Past
from service.decoding.filters.columns import top_columns
from service.decoding.options import DecodingOptions
from service.decoding.slots import PerSlot

# Tokens that mostly hold top-p: to sort all of them takes longer than a step.
_FEW = 64


class Sampling:
    """`sampling_temperature`, `sampling_top_k`, `sampling_top_p`, `sampling_seed`.

    The token at position i is where the i-th number of a counter-based generator (Philox,
    Salmon et al. 2011) keyed by the seed falls among the cumulated probabilities. It keeps the
    model's own log-probability.
    """

    def __init__(self) -> None:
        self._temperatures = PerSlot(np.float64)
        self._top_k = PerSlot(np.int64)
        self._top_p = PerSlot(np.float64)
        self._numbers = PerSlot(np.float64, 1)

    def join(self, slot: int, options: DecodingOptions, source_length: int) -> bool:
        self._temperatures.put(slot, options.sampling_temperature)
        self._top_k.put(slot, min(options.sampling_top_k, np.iinfo(np.int64).max))
        self._top_p.put(slot, options.sampling_top_p)
        numbers = np.zeros(0)
        if options.sampling_temperature:
            generator = np.random.Generator(np.random.Philox(key=options.sampling_seed))
            numbers = generator.random(options.length_limit(source_length))
        self._numbers.put(slot, numbers)
        return options.sampling_temperature > 0

    def change(self, past: Past, columns: Columns) -> None:
        (rows,) = self._temperatures[past.slots].nonzero()  # a sample has one row
        slots, log_probs = past.slots[rows], columns.log_probs
        highest = log_probs[rows].max(axis=1, keepdims=True)
        highest[~np.isfinite(highest)] = 0  # nothing is left to draw from
        with np.errstate(over="ignore"):  # of a very low temperature
            weights = np.exp((log_probs[rows] - highest) / self._temperatures[slots][:, None])
        weights[weights < self._least_weights(slots, weights)[:, None]] = 0
        numbers = self._numbers.rows[slots, past.positions[rows]]
        drawn = _drawn(weights, numbers)
        kept = log_probs[rows, drawn]
        log_probs[rows] = -np.inf
        log_probs[rows, drawn] = kept

    def _least_weights(
        self, slots: NDArray[np.intp], weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """The weight of the last token of each row that top-k and top-p leave, (rows,)."""
        least, vocabulary_size = np.zeros(len(slots)), weights.shape[1]
        top_k, top_p = self._top_k[slots], self._top_p[slots]
        top_k = np.where(top_k == 0, vocabulary_size, np.minimum(top_k, vocabulary_size))
        is_limited = top_k < vocabulary_size
        (cut,) = (is_limited | (top_p < 1)).nonzero()
        count = min(vocabulary_size, int(top_k[is_limited].max(initial=_FEW)))
        while len(cut):
            best = _descending(weights[cut], count)
            best[np.arange(count) >= top_k[cut, None]] = 0
            sums = best.cumsum(axis=1)
            totals = np.where(is_limited[cut], sums[:, -1], weights[cut].sum(axis=1))
            # Those before which the others don't reach top-p yet.
            is_in = (sums - best < (top_p[cut] * totals)[:, None]) & (best > 0)
            last = np.maximum(is_in.sum(axis=1) - 1, 0)
            least[cut] = best[np.arange(len(cut)), last]
            if count == vocabulary_size:
                break
            cut = cut[~is_limited[cut] & (sums[:, -1] < top_p[cut] * totals)]
            count = vocabulary_size
        return least


def _descending(weights: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """The `count` greatest weights of each row."""
    if count < weights.shape[1]:
        return np.take_along_axis(weights, top_columns(weights, count), axis=1)
    ordered: NDArray[np.float64] = -np.sort(-weights, axis=1)
    return ordered


def _drawn(weights: NDArray[np.float64], numbers: NDArray[np.float64]) -> NDArray[np.intp]:
    """The column in which each number, from 0 to below 1, falls; none of weight 0."""
    sums = weights.cumsum(axis=1)
    totals = sums[:, -1]
    # Rounding may lift a number to the total, behind the last column.
    targets = np.minimum(numbers * totals, np.nextafter(totals, 0))
    columns: NDArray[np.intp] = (sums <= targets[:, None]).sum(axis=1)
    last: NDArray[np.intp] = np.minimum(columns, weights.shape[1] - 1)
    return last
