"""A toy model behind a gate: tests decide when each decoding step happens, without any clock.

`Stage` is an engine that runs one, on a clock that stands still.
"""

import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future

import numpy as np
from numpy.typing import NDArray

from service.batching import QueueLimits
from service.bundle import Limits
from service.decoding import DecodingOptions, FinishReason, Hypothesis, StepOutput
from service.engine import Engine, SilentObserver
from service.errors import Refusal
from tests.toys import ToyModel

POISON = 13  # a source token that the model can't encode
PATIENCE = 30  # seconds until a test gives up; nothing should take any of them

GREEDY = DecodingOptions(max_length=40)
LIMITS = Limits(max_source_tokens=32, max_target_tokens=64)


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
        self.fault: BaseException = RuntimeError("injected")

    def append(
        self,
        sources: Sequence[Sequence[int]],
        beam_size: int,
        shortlist: Sequence[bool] | None = None,
    ) -> None:
        if any(POISON in source for source in sources):
            raise RuntimeError("poison")
        super().append(sources, beam_size, shortlist)

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
            raise self.fault
        return super().step(tokens, positions, num_candidates, attention, full)


class Recorder(SilentObserver):
    """Counts how sentences end, and keeps what else there is to tell."""

    def __init__(self) -> None:
        self.ends: Counter[str] = Counter()
        self.rows: list[int] = []
        self.refusals: list[Refusal] = []
        self.first_steps: list[float] = []
        self.restarts = threading.Semaphore(0)
        self._lock = threading.Lock()

    def _count(self, end: str) -> None:
        with self._lock:
            self.ends[end] += 1

    def stepped(self, rows: int, seconds: float) -> None:
        self.rows.append(rows)

    def first_stepped(self, seconds: float) -> None:
        self.first_steps.append(seconds)

    def finished(self, reason: FinishReason, tokens: int, seconds: float) -> None:
        self._count("finished")

    def cancelled(self) -> None:
        self._count("cancelled")

    def expired(self) -> None:
        self._count("expired")

    def failed(self) -> None:
        self._count("failed")

    def refused(self, sentences: int, reason: Refusal) -> None:
        self._count("refused")
        self.refusals.append(reason)

    def worker_restarted(self) -> None:
        self.restarts.release()


class Clock:
    """A clock that the test moves, or breaks for whoever reads it next."""

    def __init__(self) -> None:
        self.now = 0.0
        self.faults: list[BaseException] = []

    def __call__(self) -> float:
        if self.faults:
            raise self.faults.pop()
        return self.now


class Stage:
    """An engine with one worker behind a gate, on a clock that stands still."""

    def __init__(self, *, queue: QueueLimits | None = None) -> None:
        self.gate, self.clock, self.recorder = Gate(), Clock(), Recorder()
        self.models: list[GatedModel] = []
        self.engine = Engine(
            self._make_model,
            LIMITS,
            max_rows=4,
            queue=queue,
            observer=self.recorder,
            clock=self.clock,
        )

    def _make_model(self) -> GatedModel:
        self.models.append(GatedModel(self.gate))
        return self.models[-1]

    def submit(
        self,
        source: Sequence[int],
        options: DecodingOptions = GREEDY,
        deadline: float | None = None,
    ) -> Future[list[Hypothesis]]:
        """Submits one sentence."""
        [future] = self.engine.submit_all([source], options, deadline)
        return future

    def in_flight(self, *sources: Sequence[int]) -> list[Future[list[Hypothesis]]]:
        """Submits to the idle engine and returns once the first step is about to run."""
        futures = self.engine.submit_all(sources, GREEDY)
        self.gate.await_worker()
        return futures
