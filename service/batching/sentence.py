"""What waits, what runs, and the bounds of both."""

import math
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from service.decoding import DecodingOptions, Hypothesis
from service.tracing import SentenceTimes

# A caller counts down on a clock of its own, from a time that gRPC rounded by up to a hundredth on
# its way; the rest is for jitter.
_SLACK_SHARE, _SLACK_SECONDS = 0.01, 0.02


class Answer(Future[list[Hypothesis]]):
    """A future that reports its cancelling, so that nobody has to ask every one at every step.

    clock: what `cancelled_at` is read from; not a number until then.
    """

    def __init__(
        self,
        report: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = lambda: math.nan,
    ) -> None:
        super().__init__()
        self._report = report
        self._clock = clock
        self.cancelled_at = math.nan

    def cancel(self) -> bool:
        """As in `Future`."""
        if not self.done():
            self.cancelled_at = self._clock()
        cancelled = super().cancel()
        if cancelled:
            self._report()
        return cancelled


@dataclass(slots=True, eq=False)
class Sentence:
    """One unit to decode: what is waiting, running and answered is this same object.

    ids: source ids as the encoder takes them, with the end-of-sentence id.
    enqueued, deadline: seconds on the engine's clock.
    group: the request it belongs to, whatever stands for it; different groups take turns.
    future: where the hypotheses go, best first; cancelling it takes the sentence out.
    listener: hears of its times, on the worker's thread, before the future has the hypotheses;
        None where nobody asked.
    joined, encoded, first_step: when it came to a worker, seconds on the engine's clock, and how
        many steps the worker had made by then.
    """

    ids: Sequence[int]
    options: DecodingOptions
    enqueued: float
    deadline: float = math.inf
    group: Hashable = None
    future: Answer = field(default_factory=Answer)
    listener: Callable[[SentenceTimes], None] | None = None
    joined: float = math.nan
    encoded: float = math.nan
    first_step: int = 0

    @property
    def beam_size(self) -> int:
        return self.options.beam_size

    def is_gone(self, now: float) -> bool:
        """Whether nobody waits for the answer any more: cancelled, or past its deadline."""
        return self.deadline <= now or self.future.cancelled()

    @property
    def ran_out(self) -> bool:
        """Of one that was cancelled: whether that was for its deadline, as when gRPC saw it first.

        Otherwise its caller left.
        """
        slack = _SLACK_SECONDS + _SLACK_SHARE * (self.deadline - self.enqueued)
        return self.future.cancelled_at >= self.deadline - slack


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """What is known of a request before it is read; afterwards it is its sentences' `group`.

    num_sentences: that will come first, together. num_tokens: source tokens of all that will come,
        a guess.
    deadline: seconds on the engine's clock.
    """

    num_sentences: int
    num_tokens: int
    beam_size: int = 1
    deadline: float = math.inf


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """Bounds of the queue and of what joins at once.

    max_sentences, max_tokens: what may wait (source tokens); more is refused with `QueueFull`.
    max_joining_tokens: source tokens that join a running batch in one step, since its rows stand
        still while newcomers are encoded; a single longer sentence still joins, alone.
    max_width_wait_seconds: after that long, a width that no worker runs gets the next free worker.
    """

    max_sentences: int = 4096
    max_tokens: int = 262_144
    max_joining_tokens: int = 1024
    max_width_wait_seconds: float = 0.1


@dataclass(slots=True)
class Load:
    """What one worker has in flight: sentences, and their source tokens.

    `beam_size` is None while it runs nothing. `is_working` is False from a worker's death until
    another one can run in its place.
    """

    max_rows: int
    num_sentences: int = 0
    beam_size: int | None = None
    num_tokens: int = 0
    is_working: bool = True

    @property
    def row_tokens(self) -> int:
        """Source tokens in flight, each counted once for every beam."""
        return self.num_tokens * (self.beam_size or 0)

    def free_sentences(self, beam_size: int) -> int:
        return self.max_rows // beam_size - self.num_sentences

    def serves(self, beam_size: int) -> bool:
        return self.is_working and (self.beam_size is None or self.beam_size == beam_size)


@dataclass(frozen=True, slots=True)
class Admission:
    """Who joins now (all of one beam width), and who left the queue without joining."""

    joining: list[Sentence]
    gone: list[Sentence]
