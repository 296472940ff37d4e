"""`Engine`: one model's workers and the queue before them."""

import logging
import math
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Thread

from service.batching import Batcher, Load, QueueLimits, Sentence
from service.bundle import Bundle, Limits
from service.decoding import Batch, DecodingOptions, Hypothesis, StepModel
from service.engine.cores import usable_cores
from service.engine.dispatcher import Answer, Clock, Dispatcher
from service.engine.observer import Observer, SilentObserver
from service.engine.worker import Worker, reject, stopped
from service.errors import InvalidArgument, QueueFull
from service.session import Graphs, OnnxModel, prove

_LOG = logging.getLogger(__name__)


class Engine:
    """Decodes submitted sentences on worker threads, which run from the start.

    make_model: a new model for a worker, at its start and after a fault; called on its thread.
    limits: the longest source and target the model takes.
    max_rows: sentences x beams that one worker decodes at once.
    """

    def __init__(
        self,
        make_model: Callable[[], StepModel],
        limits: Limits,
        *,
        workers: int = 1,
        max_rows: int = 64,
        queue: QueueLimits | None = None,
        observer: Observer | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        self.limits = limits
        self.max_rows = max_rows
        self._make_model = make_model
        self._observer = observer or SilentObserver()
        self._clock = clock
        self._loads = [Load(max_rows) for _ in range(workers)]
        self._dispatcher = Dispatcher(Batcher(queue), self._loads, clock)
        self._threads = [self._start_worker(load) for load in self._loads]

    @property
    def num_waiting(self) -> int:
        """Sentences in the queue."""
        return self._dispatcher.num_waiting

    @property
    def num_rows(self) -> int:
        """Rows in flight, of all workers."""
        return sum(load.num_sentences * (load.beam_size or 0) for load in self._loads)

    def submit_all(
        self,
        sources: Sequence[Sequence[int]],
        options: DecodingOptions,
        deadline: float | None = None,
    ) -> list[Future[list[Hypothesis]]]:
        """Queues sentences, all or none; returns the hypotheses of each, best first, to come.

        sources: source ids with the end-of-sentence id. deadline: seconds on the engine's clock.
        Cancelling a future frees its rows before the next step.
        Raises InvalidArgument, QueueFull and Unavailable; futures raise DeadlineExceeded,
        WorkerFailed and Unavailable.
        """
        self._check(sources, options)
        now = self._clock()
        until = math.inf if deadline is None else deadline
        note = self._dispatcher.note_cancellation
        sentences = [Sentence(ids, options, now, until, Answer(note)) for ids in sources]
        try:
            self._dispatcher.submit(sentences)
        except QueueFull:
            self._observer.refused(len(sentences))
            raise
        return [sentence.future for sentence in sentences]

    def warm_up(self) -> None:
        """Runs the largest shapes on the calling thread, so that the first callers don't pay."""
        model = self._make_model()
        options = DecodingOptions(max_length=2)
        longest = [model.eos_id] * self.limits.max_source_tokens
        for sources in ([longest], [longest[:16]] * self.max_rows):
            batch = Batch[int](model, 1)
            batch.join(range(len(sources)), sources, [options] * len(sources))
            while len(batch):
                batch.step()

    def close(self, timeout: float = 10.0) -> None:
        """Stops the workers before their next step; what is not finished fails with Unavailable.

        A worker whose step takes longer than `timeout` seconds is left to end with the process.
        """
        for sentence in self._dispatcher.stop():
            was_waiting = reject(sentence, stopped())
            (self._observer.failed if was_waiting else self._observer.cancelled)()
        until = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))
        if running := sum(thread.is_alive() for thread in self._threads):
            _LOG.warning("workers still in a step after %g s: %d", timeout, running)

    def _start_worker(self, load: Load) -> Thread:
        worker = Worker(self._make_model, load, self._dispatcher, self._observer, self._clock)
        thread = Thread(target=worker.run, name="decode", daemon=True)
        thread.start()
        return thread

    def _check(self, sources: Sequence[Sequence[int]], options: DecodingOptions) -> None:
        longest = max(map(len, sources), default=0)
        if longest > self.limits.max_source_tokens:
            raise InvalidArgument(
                f"a sentence has {longest} tokens, the limit is {self.limits.max_source_tokens}; "
                "split it"
            )
        if options.max_length > self.limits.max_target_tokens:
            raise InvalidArgument(
                f"max_length is {options.max_length}, the model's limit is "
                f"{self.limits.max_target_tokens}; ask for less"
            )
        if options.beam_size > self.max_rows:
            raise InvalidArgument(
                f"beam_size is {options.beam_size}, a batch has {self.max_rows} rows; ask for less"
            )


def load_engine(
    bundle: Bundle,
    *,
    precision: str,
    device: str = "cpu",
    workers: int = 0,
    max_rows: int = 64,
    queue: QueueLimits | None = None,
    observer: Observer | None = None,
) -> Engine:
    """The engine of a bundle; 0 workers are one per usable core on the CPU, and one on a GPU.

    Raises ConfigError for a precision the bundle lacks or a device that isn't there, BundleError
    for graphs that aren't what the manifest says.
    """
    graphs = Graphs.load(bundle, precision, device=device)
    prove(graphs)
    return Engine(
        lambda: OnnxModel(graphs, max_rows),
        bundle.manifest.limits,
        workers=workers or (usable_cores() if device == "cpu" else 1),
        max_rows=max_rows,
        queue=queue,
        observer=observer,
    )
