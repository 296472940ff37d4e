"""The queue as threads see it: a `Batcher` behind the one lock of the engine."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from threading import Condition, Event

from service.batching import Admission, Batcher, Load, Request, Sentence
from service.errors import Unavailable

Clock = Callable[[], float]


@dataclass(slots=True)
class Progress:
    """What a worker did in one round.

    rows: decoded. num_sentences, num_tokens: what it runs now. finished_tokens, finished_steps:
    source tokens of the sentences that finished, and the steps it took.
    """

    rows: int = 0
    num_sentences: int = 0
    num_tokens: int = 0
    finished_tokens: int = 0
    finished_steps: int = 0


class Dispatcher:
    """Hands waiting sentences to workers, until it is stopped."""

    def __init__(self, batcher: Batcher, loads: Sequence[Load], clock: Clock) -> None:
        self._batcher = batcher
        self._loads = loads
        self._others = {id(load): [other for other in loads if other is not load] for load in loads}
        self._clock = clock
        self._condition = Condition()
        self._stopping = Event()
        self._is_down = False
        self.last_cancellation = object()
        """Another object after every cancellation."""

    @property
    def num_waiting(self) -> int:
        return self._batcher.num_sentences

    @property
    def num_accepted(self) -> int:
        """Sentences that wait or are with a worker."""
        with self._condition:
            return self._batcher.num_sentences + sum(load.num_sentences for load in self._loads)

    @property
    def is_stopped(self) -> bool:
        return self._stopping.is_set()

    def note_cancellation(self) -> None:
        """For the report of an `Answer`; called on any thread."""
        self.last_cancellation = object()

    def expect(self, request: Request) -> None:
        """Keeps room for a request; raises what `submit` would raise now for its sentences."""
        with self._condition:
            self._check_open()
            self._batcher.expect(request, self._clock(), self._loads)

    def forget(self, request: Hashable) -> None:
        """Gives up the room of a request whose sentences haven't come."""
        # Nearly always they have come. To look doesn't need the lock, which workers may hold: only
        # who expected a request forgets it.
        if self._batcher.expects(request):
            with self._condition:
                self._batcher.forget(request)

    def submit(self, sentences: Sequence[Sentence], tokens_to_come: int | None) -> None:
        """Queues all or none, as `Batcher.add` does.

        Raises what that raises, and Unavailable after `stop` or while no worker can run.
        """
        with self._condition:
            self._check_open()
            self._batcher.add(
                sentences, self._clock(), loads=self._loads, tokens_to_come=tokens_to_come
            )
            self._condition.notify(len(sentences))

    def admit(self, load: Load, progress: Progress) -> Admission | None:
        """Who joins the worker with this load now; waits while it has nothing to do.

        progress: since the worker asked last. None when it must stop, whatever it still runs.
        """
        with self._condition:
            self.release(load, progress)
            while not self.is_stopped:
                admission = self._batcher.admit(load, self._others[id(load)], self._clock())
                if joining := admission.joining:
                    load.beam_size = joining[0].beam_size
                    load.num_sentences += len(joining)
                    load.num_tokens += sum(len(sentence.ids) for sentence in joining)
                if load.num_sentences or admission.gone:
                    return admission
                self._condition.wait()
        return None

    def release(self, load: Load, progress: Progress) -> None:
        """Notes what a worker has done and what it runs now."""
        with self._condition:
            load.num_sentences, load.num_tokens = progress.num_sentences, progress.num_tokens
            if load.num_sentences == 0:
                load.beam_size = None
            throughput = self._batcher.throughput
            throughput.stepped(progress.rows, self._batcher.num_sentences > 0, self._clock())
            throughput.finished(progress.finished_tokens, progress.finished_steps)

    def lose(self, load: Load) -> None:
        """Notes that the worker with this load has died; its sentences are answered."""
        with self._condition:
            load.num_sentences = load.num_tokens = 0
            load.beam_size = None
            load.is_working = False
            self._condition.notify_all()  # the others need not leave it a share any more

    def restore(self, load: Load) -> None:
        """Notes that a worker with this load can run again."""
        with self._condition:
            load.is_working = True
            self._is_down = False

    def give_up(self) -> list[Sentence]:
        """Accepts nothing until a worker is restored, if none can run.

        Returns the sentences that then wait for nobody.
        """
        with self._condition:
            self._is_down = not any(load.is_working for load in self._loads)
            return self._batcher.take_all() if self._is_down else []

    def pause(self, seconds: float) -> None:
        """Waits so long, or until it is stopped."""
        self._stopping.wait(seconds)

    def stop(self) -> list[Sentence]:
        """Ends every worker before its next step; returns the sentences that still waited."""
        with self._condition:
            self._stopping.set()
            self._condition.notify_all()
            return self._batcher.take_all()

    def _check_open(self) -> None:
        if self._stopping.is_set():
            raise Unavailable("the server is shutting down; send the request to another one")
        if self._is_down:
            raise Unavailable("the model can't run at present; send the request to another one")
