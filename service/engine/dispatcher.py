"""The queue as threads see it: a `Batcher` behind the one lock of the engine."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Condition

from service.batching import Admission, Batcher, Load, Sentence
from service.decoding import Hypothesis
from service.errors import Unavailable

Clock = Callable[[], float]


class Answer(Future[list[Hypothesis]]):
    """A future that reports its cancelling, so that nobody has to ask every one at every step."""

    def __init__(self, report: Callable[[], None]) -> None:
        super().__init__()
        self._report = report

    def cancel(self) -> bool:
        """As in `Future`."""
        cancelled = super().cancel()
        if cancelled:
            self._report()
        return cancelled


class Dispatcher:
    """Hands waiting sentences to workers, until it is stopped."""

    def __init__(self, batcher: Batcher, loads: Sequence[Load], clock: Clock) -> None:
        self._batcher = batcher
        self._others = {id(load): [other for other in loads if other is not load] for load in loads}
        self._clock = clock
        self._condition = Condition()
        self._is_stopped = False
        self.last_cancellation = object()
        """Another object after every cancellation."""

    @property
    def num_waiting(self) -> int:
        return self._batcher.num_sentences

    def note_cancellation(self) -> None:
        """For the report of an `Answer`; called on any thread."""
        self.last_cancellation = object()

    def submit(self, sentences: Sequence[Sentence]) -> None:
        """Queues all or none. Raises QueueFull, and Unavailable after `stop`."""
        with self._condition:
            if self._is_stopped:
                raise Unavailable("the server is shutting down; send the request to another one")
            self._batcher.add(sentences, self._clock())
            self._condition.notify(len(sentences))

    def admit(self, load: Load) -> Admission | None:
        """Who joins the worker with this load now; waits while it has nothing to do.

        None when the worker must stop, whatever it still runs.
        """
        with self._condition:
            while not self._is_stopped:
                admission = self._batcher.admit(load, self._others[id(load)], self._clock())
                if admission.joining:
                    load.beam_size = admission.joining[0].beam_size
                    load.num_sentences += len(admission.joining)
                if load.num_sentences or admission.gone:
                    return admission
                self._condition.wait()
        return None

    def release(self, load: Load, num_sentences: int) -> None:
        """Notes that the worker runs `num_sentences` now."""
        with self._condition:
            load.num_sentences = num_sentences
            if num_sentences == 0:
                load.beam_size = None

    def stop(self) -> list[Sentence]:
        """Ends every worker before its next step; returns the sentences that still waited."""
        with self._condition:
            self._is_stopped = True
            self._condition.notify_all()
            return self._batcher.take_all()
