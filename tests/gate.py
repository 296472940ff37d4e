"""A toy model behind a gate: tests decide when each decoding step happens, without any clock."""

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from service.decoding import StepOutput
from tests.toys import ToyModel

POISON = 13  # a source token that the model can't encode
PATIENCE = 30  # seconds until a test gives up; nothing should take any of them


class Gate:
    """Where a worker waits before every step until the test lets it through."""

    def __init__(self) -> None:
        self._permits = threading.Semaphore(0)
        self._arrivals = threading.Semaphore(0)

    def wait(self) -> None:
        """Called by the worker."""
        self._arrivals.release()
        assert self._permits.acquire(timeout=PATIENCE)

    def await_worker(self) -> None:
        """Returns once the worker is about to take a step."""
        assert self._arrivals.acquire(timeout=PATIENCE)

    def let_one_step(self) -> None:
        """Lets the step run that waits, and returns once the next one waits."""
        self._permits.release()
        self.await_worker()

    def open(self) -> None:
        self._permits.release(10_000)


class GatedModel(ToyModel):
    """A toy behind a gate, in which no sentence ends before its limit; some sources are poison."""

    def __init__(self, gate: Gate) -> None:
        super().__init__(vocabulary_size=20, eos_bias=-100.0)
        self._gate = gate
        self.fails = False

    def append(self, sources: Sequence[Sequence[int]], beam_size: int) -> None:
        if any(POISON in source for source in sources):
            raise RuntimeError("poison")
        super().append(sources, beam_size)

    def step(
        self,
        tokens: NDArray[np.int64],
        positions: NDArray[np.int32],
        num_candidates: int,
        attention: bool,
        full: bool = False,
    ) -> StepOutput:
        self._gate.wait()
        if self.fails:
            raise RuntimeError("injected")
        return super().step(tokens, positions, num_candidates, attention, full)
