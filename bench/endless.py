"""A model whose sentences end at their length limit only, so that a known work is measured."""

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from service.decoding import StepModel, StepOutput


class Endless:
    """A `StepModel` around another one; no token ends a sentence. Counts the time spent inside."""

    eos_id = -1

    def __init__(self, model: StepModel) -> None:
        self._model = model
        self.start_id = model.start_id
        self.step_seconds = self.reorder_seconds = 0.0

    def append(
        self,
        sources: Sequence[Sequence[int]],
        beam_size: int,
        shortlist: Sequence[bool] | None = None,
    ) -> None:
        self._model.append(sources, beam_size, shortlist)

    def step(
        self,
        tokens: NDArray[np.int64],
        positions: NDArray[np.int32],
        num_candidates: int,
        attention: bool,
        full: bool = False,
    ) -> StepOutput:
        started = time.perf_counter()
        output = self._model.step(tokens, positions, num_candidates, attention, full)
        self.step_seconds += time.perf_counter() - started
        return output

    def more(self, num_candidates: int) -> StepOutput:
        started = time.perf_counter()
        output = self._model.more(num_candidates)
        self.step_seconds += time.perf_counter() - started
        return output

    def reorder(self, rows: NDArray[np.int64]) -> None:
        started = time.perf_counter()
        self._model.reorder(rows)
        self.reorder_seconds += time.perf_counter() - started
