"""`Engine`: one model's workers and the queue before them."""

import logging
import math
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial

from service.batching import Answer, Batcher, Load, QueueLimits, Request, Sentence
from service.bundle import Bundle, Limits
from service.decoding import DecodingOptions, Hypothesis, StepModel
from service.engine.cores import usable_cores
from service.engine.dispatcher import Clock, Dispatcher
from service.engine.observer import Observer, SilentObserver
from service.engine.supervisor import Supervisor
from service.engine.warming import warm_up
from service.engine.worker import Worker, fail_all, stopped
from service.errors import InvalidArgument, QueueFull
from service.session import Graphs, OnnxModel, prove
from service.tracing import sentence_listener

_LOG = logging.getLogger(__name__)


class Engine:
    """Decodes submitted sentences on worker threads, which run from the start.

    make_model: a new model for a worker, at its start and after a fault; called on its thread.
    limits: the longest source and target the model takes.
    max_rows: sentences x beams that one worker decodes at once.
    warm_up: what each worker does with its first model before it takes sentences, on its thread.
    vocabulary_size: of the target: options that name other ids are refused; None trusts callers.
    """

    def __init__(
        self,
        make_model: Callable[[], StepModel],
        limits: Limits,
        *,
        workers: int = 1,
        max_rows: int = 96,
        queue: QueueLimits | None = None,
        observer: Observer | None = None,
        clock: Clock = time.monotonic,
        warm_up: Callable[[StepModel], None] = lambda model: None,
        vocabulary_size: int | None = None,
    ) -> None:
        self.limits = limits
        self.vocabulary_size = vocabulary_size
        self.max_rows = max_rows
        self._make_model = make_model
        self._warm_up = warm_up
        self._observer = observer or SilentObserver()
        self._clock = clock
        self._loads = [Load(max_rows, is_working=False) for _ in range(workers)]
        self._dispatcher = Dispatcher(Batcher(queue), self._loads, clock)
        self._supervisors = [self._supervisor(load) for load in self._loads]

    @property
    def num_waiting(self) -> int:
        """Sentences in the queue."""
        return self._dispatcher.num_waiting

    @property
    def num_accepted(self) -> int:
        """Sentences that were accepted and have no answer yet."""
        return self._dispatcher.num_accepted

    @property
    def is_healthy(self) -> bool:
        """Whether a worker is alive whose model works; False until one is ready, and at the end."""
        return any(supervisor.is_healthy for supervisor in self._supervisors)

    @property
    def num_rows(self) -> int:
        """Rows in flight, of all workers."""
        return sum(load.num_sentences * (load.beam_size or 0) for load in self._loads)

    @property
    def max_rows_in_flight(self) -> int:
        """Rows that have room in the batches of all workers."""
        return self.max_rows * len(self._loads)

    @contextmanager
    def room_for(self, request: Request) -> Iterator[None]:
        """Keeps room for a request in a block that reads and submits it, with it as the group.

        What `submit_all` would refuse, by what is known of it, is refused before the block: a
        server that is asked for more than it can do has no time to read in vain. Raises QueueFull
        and Unavailable.
        """
        try:
            self._dispatcher.expect(request)
        except QueueFull as full:
            self._tell_refused(request.num_sentences, full)
            raise
        try:
            yield
        finally:
            self._dispatcher.forget(request)

    def submit_all(
        self,
        sources: Sequence[Sequence[int]],
        options: DecodingOptions | Sequence[DecodingOptions],
        deadline: float | None = None,
        group: Hashable = None,
        *,
        tokens_to_come: int = 0,
    ) -> list[Future[list[Hypothesis]]]:
        """Queues sentences, all or none; returns the hypotheses of each, best first, to come.

        sources: source ids with the end-of-sentence id. deadline: seconds on the engine's clock.
        options: of all, or of each; all of one beam size.
        group: the request they belong to, any object, compared by equality: requests take turns.
        Without one they are a request of their own.
        tokens_to_come: how many the request hands to `submit_more` later, since the deadline has
        to be met with them.
        Cancelling a future frees its rows before the next step.
        Raises InvalidArgument, QueueFull, DeadlineExceeded and Unavailable; futures raise
        DeadlineExceeded, WorkerFailed and Unavailable.
        """
        sentences = self._sentences(sources, options, deadline, group)
        try:
            self._dispatcher.submit(sentences, tokens_to_come)
        except QueueFull as full:
            self._tell_refused(len(sentences), full)
            raise
        return [sentence.future for sentence in sentences]

    def submit_more(
        self,
        sources: Sequence[Sequence[int]],
        options: DecodingOptions | Sequence[DecodingOptions],
        deadline: float | None = None,
        group: Hashable = None,
    ) -> list[Future[list[Hypothesis]]]:
        """`submit_all` for a request that was accepted before, and for which work has been done.

        It isn't refused because its deadline is unlikely to be met, and QueueFull isn't told to the
        observer as a refusal: the caller is to try again.
        """
        sentences = self._sentences(sources, options, deadline, group)
        self._dispatcher.submit(sentences, None)
        return [sentence.future for sentence in sentences]

    def wait_until_ready(self) -> None:
        """Returns once every worker has its model, warmed up; raises what kept one from that.

        A worker that can't start doesn't try again: then the engine is to be closed.
        """
        for supervisor in self._supervisors:
            supervisor.started.result()

    def close(self, timeout: float = 10.0) -> None:
        """Stops the workers before their next step; what is not finished fails with Unavailable.

        A worker whose step takes longer than `timeout` seconds is left to end with the process.
        """
        fail_all(self._dispatcher.stop(), stopped(), self._observer)
        until = time.monotonic() + timeout
        for supervisor in self._supervisors:
            supervisor.join(max(0.0, until - time.monotonic()))
        if running := sum(supervisor.is_alive for supervisor in self._supervisors):
            _LOG.warning("workers still in a step after %g s: %d", timeout, running)

    def _supervisor(self, load: Load) -> Supervisor:
        # No reference to the engine: it must be freed, and its graphs, as soon as nobody needs it.
        parts = self._make_model, load, self._dispatcher, self._observer, self._clock
        make_worker = partial(Worker, *parts)
        return Supervisor(make_worker, self._warm_up, load, self._dispatcher, self._observer)

    def _tell_refused(self, num_sentences: int, full: QueueFull) -> None:
        if full.reason:
            self._observer.refused(num_sentences, full.reason)

    def _sentences(
        self,
        sources: Sequence[Sequence[int]],
        options: DecodingOptions | Sequence[DecodingOptions],
        deadline: float | None,
        group: Hashable,
    ) -> list[Sentence]:
        each = [options] * len(sources) if isinstance(options, DecodingOptions) else options
        self._check(sources, each)
        now, until = self._clock(), math.inf if deadline is None else deadline
        group = object() if group is None else group
        note, clock = self._dispatcher.note_cancellation, self._clock
        # Of the task that submits: workers know nothing of requests.
        listener = sentence_listener()
        return [
            Sentence(ids, option, now, until, group, Answer(note, clock), listener)
            for ids, option in zip(sources, each, strict=True)
        ]

    def _check(self, sources: Sequence[Sequence[int]], options: Sequence[DecodingOptions]) -> None:
        longest = max(map(len, sources), default=0)
        if longest > self.limits.max_source_tokens:
            raise InvalidArgument(
                f"a sentence has {longest} tokens, the limit is {self.limits.max_source_tokens}; "
                "split it"
            )
        for option in {id(option): option for option in options}.values():
            self.check_options(option)

    def check_options(self, options: DecodingOptions) -> None:
        """Raises InvalidArgument for options that no sentence can be submitted with."""
        if options.max_length > self.limits.max_target_tokens:
            raise InvalidArgument(
                f"max_length is {options.max_length}, the model's limit is "
                f"{self.limits.max_target_tokens}; ask for less"
            )
        if options.beam_size > self.max_rows:
            raise InvalidArgument(
                f"beam_size is {options.beam_size}, a batch has {self.max_rows} rows; ask for less"
            )
        if self.vocabulary_size is not None and options.largest_id >= self.vocabulary_size:
            raise InvalidArgument(
                f"the options name the token {options.largest_id}, the vocabulary has "
                f"{self.vocabulary_size}"
            )


def load_engine(
    bundle: Bundle,
    *,
    precision: str,
    device: str = "cpu",
    workers: int = 0,
    max_rows: int = 96,
    queue: QueueLimits | None = None,
    observer: Observer | None = None,
    own_kernels: bool = True,
) -> Engine:
    """The engine of a bundle; 0 workers are one per usable core on the CPU, and one on a GPU.

    own_kernels: whether int8 graphs on the CPU may use those of `service.session.kernels`.

    Its workers warm up by themselves; `wait_until_ready` returns when they have.
    Raises ConfigError for a precision the bundle lacks or a device that isn't there, BundleError
    for graphs that aren't what the manifest says.
    """
    graphs = Graphs.load(bundle, precision, device=device, own_kernels=own_kernels)
    prove(graphs)
    limits = bundle.manifest.limits
    return Engine(
        lambda: OnnxModel(graphs, max_rows),
        limits,
        workers=workers or (usable_cores() if device == "cpu" else 1),
        max_rows=max_rows,
        queue=queue,
        observer=observer,
        warm_up=partial(warm_up, limits=limits, max_rows=max_rows),
        vocabulary_size=bundle.manifest.vocabulary_size,
    )
