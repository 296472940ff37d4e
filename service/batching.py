"""Who joins the running batch next: the queue of sentences behind one model.

A pure data structure: no thread, no lock, no clock (`now` is an argument) and no tensor. The engine
guards it with its lock, and every worker asks it before every step. It owns the waiting sentences
and refuses new ones beyond its bounds; what runs already is described to it by `Load`.

Sentences of one beam width run together, so they wait in one line per width:

    beam 1   s1 s2 s5        a worker running beam 1 admits s1 s2 s5 ...
    beam 4   s3 s4           ... unless s3 has waited too long and no worker runs beam 4: then it
                             admits nobody, runs empty, and takes the line of the oldest

A line is first come first served by pages of some hundred sentences; within a page it goes by
length, so that those in flight together are of a length and little is padded.
"""

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from service.decoding import DecodingOptions, Hypothesis
from service.errors import InvalidArgument, QueueFull

_PAGE_SIZE = 256
_REFILL_BELOW = 0.75
# Looking through the whole queue for those who are gone takes a millisecond, in which no worker can
# admit anybody: not at every deadline, and not at every refusal.
_SWEEP_INTERVAL_SECONDS = 0.05


@dataclass(slots=True, eq=False)
class Sentence:
    """One unit to decode: what is waiting, running and answered is this same object.

    ids: source ids as the encoder takes them, with the end-of-sentence id.
    enqueued, deadline: seconds on the engine's clock.
    future: where the hypotheses go, best first; cancelling it takes the sentence out.
    """

    ids: Sequence[int]
    options: DecodingOptions
    enqueued: float
    deadline: float = math.inf
    future: Future[list[Hypothesis]] = field(default_factory=Future)

    @property
    def beam_size(self) -> int:
        return self.options.beam_size

    def is_gone(self, now: float) -> bool:
        """Whether nobody waits for the answer any more: cancelled, or past its deadline."""
        return self.deadline <= now or self.future.cancelled()


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
    """What one worker has in flight. `beam_size` is None while it runs nothing."""

    max_rows: int
    num_sentences: int = 0
    beam_size: int | None = None

    def free_sentences(self, beam_size: int) -> int:
        return self.max_rows // beam_size - self.num_sentences

    def serves(self, beam_size: int) -> bool:
        return self.beam_size is None or self.beam_size == beam_size


@dataclass(frozen=True, slots=True)
class Admission:
    """Who joins now (all of one beam width), and who left the queue without joining."""

    joining: list[Sentence]
    gone: list[Sentence]


class _Line:
    """The waiting sentences of one beam width; never empty except while it is changed."""

    def __init__(self) -> None:
        self._page: list[Sentence] = []  # from the last to the first
        self._page_oldest = math.inf
        self._shortest_first = False
        self._later: deque[Sentence] = deque()

    def __len__(self) -> int:
        return len(self._page) + len(self._later)

    def __iter__(self) -> Iterator[Sentence]:
        yield from reversed(self._page)
        yield from self._later

    @property
    def oldest(self) -> float:
        """When the one who waits longest came, or one of its page who has left."""
        return self._page_oldest if self._page else self._later[0].enqueued

    def append(self, sentence: Sentence) -> None:
        self._later.append(sentence)

    def first(self) -> Sentence:
        if not self._page:
            self._open_page()
        return self._page[-1]

    def pop(self) -> Sentence:
        return self._page.pop()

    def remove_gone(self, now: float) -> list[Sentence]:
        """Takes out everyone who is gone; the others keep their places."""
        gone = {sentence: None for sentence in self if sentence.is_gone(now)}
        if gone:
            self._page = [sentence for sentence in self._page if sentence not in gone]
            self._later = deque(sentence for sentence in self._later if sentence not in gone)
            self._page_oldest = min((each.enqueued for each in self._page), default=math.inf)
        return list(gone)

    def _open_page(self) -> None:
        self._page_oldest = self.oldest
        self._page = [self._later.popleft() for _ in range(min(_PAGE_SIZE, len(self._later)))]
        self._page.reverse()
        # Up and down in turn, so that lengths don't jump between pages.
        self._page.sort(key=lambda sentence: len(sentence.ids), reverse=self._shortest_first)
        self._shortest_first = not self._shortest_first


class Batcher:
    """The waiting sentences of one model, first come first served within each beam width."""

    def __init__(self, limits: QueueLimits | None = None) -> None:
        self._limits = limits or QueueLimits()
        self._lines: dict[int, _Line] = {}
        self._gone: list[Sentence] = []
        self._earliest_deadline = math.inf
        self._next_sweep = -math.inf
        self.num_sentences = 0
        self.num_tokens = 0

    def add(self, sentences: Sequence[Sentence], now: float) -> None:
        """Queues all of `sentences` or, with `QueueFull`, none of them.

        Raises InvalidArgument if there are more of them than even an empty queue holds.
        """
        num_tokens = sum(len(sentence.ids) for sentence in sentences)
        self._check_size(len(sentences), num_tokens)
        if not self._has_room(len(sentences), num_tokens):
            self._sweep(now)
        if not self._has_room(len(sentences), num_tokens):
            raise self._queue_full(now)
        for sentence in sentences:
            self._append(sentence)

    def admit(self, load: Load, others: Sequence[Load], now: float) -> Admission:
        """Takes out who joins the worker with this `load` now; `others` are its fellow workers."""
        if now >= self._earliest_deadline:
            self._sweep(now)
        joining: list[Sentence] = []
        beam_size = self._choose_width(load, others, now)
        if beam_size is not None:
            joining = self._take(beam_size, self._share(beam_size, load, others), now)
        gone, self._gone = self._gone, []
        return Admission(joining, gone)

    def take_all(self) -> list[Sentence]:
        """Empties the queue: for a stop that does not wait."""
        waiting = [sentence for line in self._lines.values() for sentence in line] + self._gone
        self._lines, self._gone = {}, []
        self.num_sentences = self.num_tokens = 0
        return waiting

    def _check_size(self, num_sentences: int, num_tokens: int) -> None:
        limits = self._limits
        if num_sentences > limits.max_sentences or num_tokens > limits.max_tokens:
            raise InvalidArgument(
                f"{num_sentences} sentences with {num_tokens} tokens were sent at once, the queue "
                f"holds {limits.max_sentences} and {limits.max_tokens}; send several requests"
            )

    def _has_room(self, num_sentences: int, num_tokens: int) -> bool:
        return (
            self.num_sentences + num_sentences <= self._limits.max_sentences
            and self.num_tokens + num_tokens <= self._limits.max_tokens
        )

    def _queue_full(self, now: float) -> QueueFull:
        # The oldest sentence's wait is how long the queue takes to move by its own length.
        waited = now - min((line.oldest for line in self._lines.values()), default=now)
        return QueueFull(
            f"{self.num_sentences} sentences with {self.num_tokens} tokens are waiting, the limits "
            f"are {self._limits.max_sentences} and {self._limits.max_tokens}; try again later or "
            "with a smaller request",
            retry_after_seconds=max(0.05, waited),
        )

    def _choose_width(self, load: Load, others: Iterable[Load], now: float) -> int | None:
        if not self._lines:
            return None
        oldest = min(self._lines, key=lambda beam_size: self._lines[beam_size].oldest)
        if load.serves(oldest):
            return oldest
        waited = now - self._lines[oldest].oldest
        has_worker = any(other.beam_size == oldest for other in others)
        if not has_worker and waited >= self._limits.max_width_wait_seconds:
            return None
        return load.beam_size if load.beam_size in self._lines else None

    def _share(self, beam_size: int, load: Load, others: Iterable[Load]) -> int:
        """How many may join: never more than would make this worker busier than its fellows."""
        fellows = [other for other in others if other.serves(beam_size)]
        running, waiting = load.num_sentences, len(self._lines[beam_size])
        everyone = running + sum(fellow.num_sentences for fellow in fellows)
        target = math.ceil((everyone + waiting) / (1 + len(fellows)))
        free = load.free_sentences(beam_size)
        # When more wait than fit, they would only wait elsewhere, and encoding them a few at a time
        # is much cheaper than one by one.
        if waiting > free and running > _REFILL_BELOW * (running + free):
            return 0
        return min(free, target - running)

    def _take(self, beam_size: int, max_sentences: int, now: float) -> list[Sentence]:
        line, joining, num_tokens = self._lines[beam_size], list[Sentence](), 0
        while line and len(joining) < max_sentences:
            if line.first().is_gone(now):
                self._gone.append(self._pop(line))
                continue
            num_tokens += len(line.first().ids)
            if joining and num_tokens > self._limits.max_joining_tokens:
                break
            joining.append(self._pop(line))
        if not line:
            del self._lines[beam_size]
        return joining

    def _append(self, sentence: Sentence) -> None:
        self._lines.setdefault(sentence.beam_size, _Line()).append(sentence)
        self._earliest_deadline = min(self._earliest_deadline, sentence.deadline)
        self.num_sentences += 1
        self.num_tokens += len(sentence.ids)

    def _pop(self, line: _Line) -> Sentence:
        sentence = line.pop()
        self.num_sentences -= 1
        self.num_tokens -= len(sentence.ids)
        return sentence

    def _sweep(self, now: float) -> None:
        """Takes everyone who is gone out of the queue, wherever they stand in it."""
        if now < self._next_sweep:
            return
        self._next_sweep = now + _SWEEP_INTERVAL_SECONDS
        for line in self._lines.values():
            gone = line.remove_gone(now)
            self._gone += gone
            self.num_sentences -= len(gone)
            self.num_tokens -= sum(len(sentence.ids) for sentence in gone)
        self._lines = {width: line for width, line in self._lines.items() if line}
        waiting = (sentence for line in self._lines.values() for sentence in line)
        self._earliest_deadline = min((each.deadline for each in waiting), default=math.inf)
