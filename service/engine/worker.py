"""One worker: a loop over one model and one batch."""

import logging
import math
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import InvalidStateError

from service.batching import Load, Sentence
from service.decoding import Batch, DecodingOptions, Hypothesis, StepModel
from service.engine.dispatcher import Clock, Dispatcher, Progress
from service.engine.observer import Observer
from service.errors import (
    DeadlineExceeded,
    InvalidArgument,
    TranslationError,
    Unavailable,
    WorkerFailed,
)
from service.tracing import SentenceTimes

_LOG = logging.getLogger(__name__)


class Worker:
    """Admits, joins, steps and resolves until the dispatcher says stop.

    A fault in a step costs the sentences in flight here and this model's rows, nothing else; one in
    encoding costs only the newcomer that causes it. Any other fault, or a model that can't be made,
    passes: then the worker is dead, and whoever called it must `abandon` its sentences.
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
        self._progress = Progress()
        self._num_steps = 0
        self.has_stepped = False
        """Whether a step has worked."""

    @property
    def num_live(self) -> int:
        return len(self._live)

    def prepare(self) -> StepModel:
        """Makes the model, which must be there before `run`; returns it."""
        self._model = self._make_model()
        return self._model

    def run(self) -> None:
        """The loop; returns once the dispatcher is stopped and every sentence here is resolved."""
        while (admission := self._dispatcher.admit(self._load, self._report())) is not None:
            self._welcome(admission.joining)
            try:
                self._leave(admission.gone)
                self._join(admission.joining)
                self._drop_gone()
                self._step(admission.joining)
            except Exception:
                _LOG.exception("a decoding step failed, with %d sentences", self.num_live)
                self._start_anew()
        self.abandon(stopped())

    def abandon(self, error: TranslationError) -> None:
        """Fails everyone in flight."""
        live, self._live = list(self._live), {}
        self._progress.num_tokens = 0
        fail_all(live, error, self._observer)

    def _welcome(self, newcomers: Sequence[Sentence]) -> None:
        for sentence in newcomers:
            self._live[sentence] = None
            self._progress.num_tokens += len(sentence.ids)
            self._earliest_deadline = min(self._earliest_deadline, sentence.deadline)

    def _start_anew(self) -> None:
        """Fails everyone in flight; the rows of the failed step are not used again."""
        self.abandon(_fault("decoding"))
        self._dispatcher.release(self._load, self._report())
        self._model = self._batch = None
        self.prepare()

    def _report(self) -> Progress:
        """What was done since the last report."""
        progress = self._progress
        progress.num_sentences = self.num_live
        self._progress = Progress(num_tokens=progress.num_tokens)
        return progress

    def _join(self, newcomers: Sequence[Sentence]) -> None:
        """Encodes newcomers together, or one by one if that fails: only the culprits fail."""
        if not newcomers:
            return
        started, now = time.perf_counter(), self._clock()
        sources = [sentence.ids for sentence in newcomers]
        batch = self._batch_for(newcomers[0].beam_size)
        try:
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
        encoded = self._clock()
        for sentence in newcomers:
            self._observer.queued(now - sentence.enqueued)
            sentence.joined, sentence.encoded = now, encoded
            sentence.first_step = self._num_steps

    def _batch_for(self, beam_size: int) -> Batch[Sentence]:
        assert self._model is not None
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

    def _step(self, newcomers: Sequence[Sentence]) -> None:
        if not self._live or self._batch is None:
            return
        begun = [sentence for sentence in newcomers if sentence in self._live]
        rows = self.num_live * self._batch_beam_size
        started = time.perf_counter()
        finished = self._batch.step()
        self._observer.stepped(rows, time.perf_counter() - started)
        self._progress.rows = rows
        self.has_stepped = True
        self._num_steps += 1
        if begun:
            now = self._clock()
            for sentence in begun:
                self._observer.first_stepped(now - sentence.enqueued)
        for sentence, hypotheses in finished:
            self._finish(sentence, hypotheses)

    def _finish(self, sentence: Sentence, hypotheses: list[Hypothesis]) -> None:
        if not hypotheses:
            self._find_fault(sentence)
            return
        self._forget(sentence)
        num_tokens = len(hypotheses[0].token_log_probs)
        self._progress.finished_tokens += len(sentence.ids)
        self._progress.finished_steps += num_tokens
        self._tell(sentence)
        try:
            sentence.future.set_result(hypotheses)
        except InvalidStateError:
            _tell_cancelled(sentence, self._observer)
            return
        seconds = self._clock() - sentence.enqueued
        self._observer.finished(hypotheses[0].finish_reason, num_tokens, seconds)

    def _find_fault(self, sentence: Sentence) -> None:
        """Answers a sentence for which no translation was found."""
        if sentence.options.is_filtered:  # the caller's doing, and no loss of the server's
            self._forget(sentence)
            if not reject(sentence, _nothing_left(sentence.options)):
                _tell_cancelled(sentence, self._observer)
            return
        _LOG.error("the model gives no probability to any token")
        self._fail(sentence, _fault("decoding"))

    def _tell(self, sentence: Sentence) -> None:
        if sentence.listener:
            times = sentence.enqueued, sentence.joined, sentence.encoded, self._clock()
            sentence.listener(SentenceTimes(*times, self._num_steps - sentence.first_step))

    def _leave(self, gone: Sequence[Sentence]) -> None:
        """Answers those who left the queue or their rows before they were done."""
        for sentence in gone:
            if sentence in self._live:
                self._forget(sentence)
        error = DeadlineExceeded("the deadline passed; allow more time or send less text")
        for sentence, has_expired in [(each, reject(each, error)) for each in gone]:
            if has_expired:
                self._observer.expired()
            else:
                _tell_cancelled(sentence, self._observer)

    def _fail(self, sentence: Sentence, error: TranslationError) -> None:
        self._forget(sentence)
        fail_all([sentence], error, self._observer)

    def _forget(self, sentence: Sentence) -> None:
        del self._live[sentence]
        self._progress.num_tokens -= len(sentence.ids)


def reject(sentence: Sentence, error: TranslationError) -> bool:
    """Ends a sentence with an error; False if its caller has cancelled it already."""
    try:
        sentence.future.set_exception(error)
    except InvalidStateError:
        return False
    return True


def fail_all(sentences: Iterable[Sentence], error: TranslationError, observer: Observer) -> None:
    """Ends sentences that are lost. All are answered before the observer hears of any of them.

    Whose caller has left by now is not lost. Who is cancelled from here on was: a request gives its
    other sentences up as soon as it hears of the first.
    """
    sentences = tuple(sentences)
    have_left = {sentence for sentence in sentences if sentence.future.cancelled()}
    for sentence in sentences:
        reject(sentence, error)
    for sentence in sentences:
        if sentence in have_left:
            _tell_cancelled(sentence, observer)
        else:
            observer.failed()


def _tell_cancelled(sentence: Sentence, observer: Observer) -> None:
    (observer.expired if sentence.ran_out else observer.cancelled)()


def stopped() -> Unavailable:
    """What those get whom a stop does not wait for."""
    return Unavailable("the server stopped before the answer; ask another one")


def _nothing_left(options: DecodingOptions) -> InvalidArgument:
    return InvalidArgument(
        f"{', '.join(options.filters)}: no translation of a sentence is left under these options; "
        "forbid less"
    )


def _fault(what: str) -> WorkerFailed:
    return WorkerFailed(f"{what} failed; the server's log has the details")
