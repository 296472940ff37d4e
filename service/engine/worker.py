"""One worker: a thread's loop over one model and one batch."""

import logging
import math
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import InvalidStateError

from service.batching import Load, Sentence
from service.decoding import Batch, Hypothesis, StepModel
from service.engine.dispatcher import Clock, Dispatcher
from service.engine.observer import Observer
from service.errors import DeadlineExceeded, TranslationError, Unavailable, WorkerFailed

_LOG = logging.getLogger(__name__)


class Worker:
    """Admits, joins, steps and resolves until the dispatcher says stop; `run` is the thread.

    A fault in a step costs the sentences in flight here and this model's rows, nothing else; one in
    encoding costs only the newcomer that causes it.
    """

    def __init__(
        self,
        make_model: Callable[[], StepModel],
        load: Load,
        dispatcher: Dispatcher,
        observer: Observer,
        clock: Clock,
    ) -> None:
        self._make_model = make_model
        self._load = load
        self._dispatcher = dispatcher
        self._observer = observer
        self._clock = clock
        self._model: StepModel | None = None
        self._batch: Batch[Sentence] | None = None
        self._batch_beam_size = 0
        # In the order of joining; a dict since sentences leave from anywhere.
        self._live: dict[Sentence, None] = {}
        # The live sentences are looked through only if one of them may have gone.
        self._earliest_deadline = math.inf
        self._seen_cancellation: object = None

    def run(self) -> None:
        """The loop; returns once the dispatcher is stopped and every sentence here is resolved."""
        while (admission := self._dispatcher.admit(self._load)) is not None:
            for sentence in admission.joining:
                self._live[sentence] = None
                self._earliest_deadline = min(self._earliest_deadline, sentence.deadline)
            try:
                self._leave(admission.gone)
                self._join(admission.joining)
                self._drop_gone()
                self._step()
            except Exception:
                _LOG.exception("a decoding step failed, with %d sentences", len(self._live))
                self._abandon(_fault("decoding"))
            self._dispatcher.release(self._load, len(self._live))
        self._abandon(stopped())

    def _join(self, newcomers: Sequence[Sentence]) -> None:
        """Encodes newcomers together, or one by one if that fails: only the culprits fail."""
        if not newcomers:
            return
        started, now = time.perf_counter(), self._clock()
        sources = [sentence.ids for sentence in newcomers]
        try:
            batch = self._batch_for(newcomers[0].beam_size)
            batch.join(newcomers, sources, [sentence.options for sentence in newcomers])
        except Exception:
            if len(newcomers) > 1:
                for sentence in newcomers:
                    self._join([sentence])
                return
            _LOG.exception("a sentence of %d tokens could not be encoded", len(sources[0]))
            self._fail(newcomers[0], _fault("encoding"))
            return
        num_tokens = sum(map(len, sources))
        self._observer.encoded(num_tokens, time.perf_counter() - started)
        for sentence in newcomers:
            self._observer.queued(now - sentence.enqueued)

    def _batch_for(self, beam_size: int) -> Batch[Sentence]:
        if self._model is None:
            self._model = self._make_model()
        if self._batch is None or self._batch_beam_size != beam_size:
            self._batch, self._batch_beam_size = Batch(self._model, beam_size), beam_size
        return self._batch

    def _drop_gone(self) -> None:
        """Frees the rows of those who cancelled or whose deadline passed."""
        now, cancellation = self._clock(), self._dispatcher.last_cancellation
        if now < self._earliest_deadline and cancellation is self._seen_cancellation:
            return
        gone = [sentence for sentence in self._live if sentence.is_gone(now)]
        if gone and self._batch is not None:
            self._batch.drop(set(gone))
            self._leave(gone)
        self._seen_cancellation = cancellation
        self._earliest_deadline = min((each.deadline for each in self._live), default=math.inf)

    def _step(self) -> None:
        if not self._live or self._batch is None:
            return
        rows = len(self._live) * self._batch_beam_size
        started = time.perf_counter()
        finished = self._batch.step()
        self._observer.stepped(rows, time.perf_counter() - started)
        for sentence, hypotheses in finished:
            self._finish(sentence, hypotheses)

    def _finish(self, sentence: Sentence, hypotheses: list[Hypothesis]) -> None:
        if not hypotheses:
            _LOG.error("the model gives no probability to any token")
            self._fail(sentence, _fault("decoding"))
            return
        del self._live[sentence]
        try:
            sentence.future.set_result(hypotheses)
        except InvalidStateError:
            self._observer.cancelled()
            return
        best = hypotheses[0]
        seconds = self._clock() - sentence.enqueued
        self._observer.finished(best.finish_reason, len(best.token_log_probs), seconds)

    def _leave(self, gone: Iterable[Sentence]) -> None:
        """Answers those who left the queue or their rows before they were done."""
        for sentence in gone:
            self._live.pop(sentence, None)
            error = DeadlineExceeded("the deadline passed; allow more time or send less text")
            lost = self._observer.expired if reject(sentence, error) else self._observer.cancelled
            lost()

    def _fail(self, sentence: Sentence, error: TranslationError) -> None:
        del self._live[sentence]
        lost = self._observer.failed if reject(sentence, error) else self._observer.cancelled
        lost()

    def _abandon(self, error: TranslationError) -> None:
        """Fails everyone in flight; the next newcomers get a new model."""
        for sentence in list(self._live):
            self._fail(sentence, error)
        self._model = self._batch = None


def reject(sentence: Sentence, error: TranslationError) -> bool:
    """Ends a sentence with an error; False if its caller has cancelled it already."""
    try:
        sentence.future.set_exception(error)
    except InvalidStateError:
        return False
    return True


def stopped() -> Unavailable:
    """What those get whom a stop does not wait for."""
    return Unavailable("the server stopped before the answer; ask another one")


def _fault(what: str) -> WorkerFailed:
    return WorkerFailed(f"{what} failed; the server's log has the details")
