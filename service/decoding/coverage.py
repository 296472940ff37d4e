"""How much attention the beams have given to each source token so far, and what that costs."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.decoding.slots import PerSlot

# A token that got none at all costs 87, not everything.
_LEAST: Final = float(np.finfo(np.float32).tiny)


class Coverage:
    """Sums of attention, one per source token and beam, of the sentences with a coverage penalty.

    Wu et al. 2016, section 7, equation 15: cp = beta * sum over the source of log min(coverage, 1),
    where the coverage is the sum of attention over the target with EOS, as in ctranslate2.
    """

    def __init__(self, beam_size: int) -> None:
        self._beam_size = beam_size
        self._sums = PerSlot(np.float64, 2)
        self._lengths = PerSlot(np.int64)
        self._weights = PerSlot(np.float64)

    def join(self, slot: int, source_length: int, weight: float) -> None:
        self._sums.put(slot, np.zeros((self._beam_size, source_length)))
        self._lengths.put(slot, source_length)
        self._weights.put(slot, weight)

    def penalties(
        self, slots: NDArray[np.intp], attention: NDArray[np.float32]
    ) -> NDArray[np.float64]:
        """cp of whatever ends in this step, by the beam that it continues; never positive.

        attention (sentences, W, source) is that of the step; the sentences are those of `slots`.
        Returns (sentences, W).
        """
        logs = np.log(np.clip(self._added(slots, attention), _LEAST, 1))
        is_padding = np.arange(logs.shape[2]) >= self._lengths[slots][:, None]
        logs[np.broadcast_to(is_padding[:, None], logs.shape)] = 0
        # One after the other, so that the width of the table doesn't matter.
        total: NDArray[np.float64] = logs.cumsum(axis=2)[:, :, -1]
        return self._weights[slots][:, None] * total

    def follow(
        self,
        slots: NDArray[np.intp],
        attention: NDArray[np.float32],
        parents: NDArray[np.int64],
    ) -> None:
        """Every beam takes over from its parent, and what that attended to in the step."""
        sums = self._added(slots, attention)
        self._sums.rows[slots] = np.take_along_axis(sums, parents[:, :, None], axis=1)

    def _added(
        self, slots: NDArray[np.intp], attention: NDArray[np.float32]
    ) -> NDArray[np.float64]:
        """The sums with the attention of the step, (sentences, W, source)."""
        sums = self._sums[slots]
        width = min(attention.shape[2], sums.shape[2])
        sums[:, :, :width] += attention[:, :, :width]
        return sums
