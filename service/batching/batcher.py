"""The queue of one model: a line for each beam width, bounds, and who joins which worker.

Sentences of one beam width run together, so they wait in one line per width:

    beam 1   s1 s2 s5        a worker running beam 1 admits s1 s2 s5 ...
    beam 4   s3 s4           ... unless s3 has waited too long and no worker runs beam 4: then it
                             admits nobody, runs empty, and takes the line of the oldest
"""

import math
from collections.abc import Hashable, Iterable, Sequence

from service.batching.line import Line
from service.batching.sentence import Admission, Load, QueueLimits, Request, Sentence
from service.batching.throughput import Throughput
from service.errors import DeadlineExceeded, InvalidArgument, QueueFull, Refusal

_REFILL_BELOW = 0.75
# Looking through the whole queue for those who are gone takes a millisecond, in which no worker can
# admit anybody: not at every deadline, and not at every refusal.
_SWEEP_INTERVAL_SECONDS = 0.05
_MIN_RETRY_SECONDS = 0.05
# Of a queue that isn't empty: for those who come again until there is room. They would have all of
# it, as soon as there is any, and leave none to those who are refused.
_PATIENT_SHARE = 0.5


class Batcher:
    """The waiting sentences of one model; within a beam width, requests take turns."""

    def __init__(self, limits: QueueLimits | None = None) -> None:
        self._limits = limits or QueueLimits()
        self._lines: dict[int, Line] = {}
        self._gone: list[Sentence] = []
        self._expected: set[Hashable] = set()
        self._num_expected = self._work_expected = 0
        self._earliest_deadline = math.inf
        self._next_sweep = -math.inf
        self.throughput = Throughput()
        self.num_sentences = 0
        self.num_tokens = 0

    def expect(self, request: Request, now: float, loads: Sequence[Load] = ()) -> None:
        """Keeps room for a request that is to be read, until its sentences come or `forget`.

        Reading is work, which is not begun for who would be refused after it, nor for two if only
        one of them has room.
        loads: what all workers have in flight.
        Raises QueueFull if there is no room or, by the estimate, no time.
        """
        if request.num_sentences > self._limits.max_sentences:
            return  # `add` says what is wrong
        self._check_room(request.num_sentences, request.num_sentences, now)
        if request.deadline > now:  # otherwise nothing is to be foreseen: reading it says so
            self._check_deadline(request, request, loads, now)
        self._expected.add(request)
        self._num_expected += request.num_sentences
        self._work_expected += request.num_tokens * request.beam_size

    def expects(self, request: Hashable) -> bool:
        """Whether room is kept for a request."""
        return request in self._expected

    def forget(self, request: Hashable) -> None:
        """Gives up the room that is kept for a request, if there is any."""
        if isinstance(request, Request) and request in self._expected:
            self._expected.remove(request)
            self._num_expected -= request.num_sentences
            self._work_expected -= request.num_tokens * request.beam_size

    def add(
        self,
        sentences: Sequence[Sentence],
        now: float,
        *,
        loads: Sequence[Load] = (),
        tokens_to_come: int | None = 0,
    ) -> None:
        """Queues sentences of one request and one beam width: all or, with an error, none of them.

        The room that was kept for their group is theirs; what is over is given up.
        loads: what all workers have in flight.
        tokens_to_come: source tokens that the request will add later; None if it has been accepted
        before, and work has been done for it: then its deadline isn't asked to be likely, and
        room in half of the queue is what it waits for.
        Raises DeadlineExceeded if the deadline has passed, QueueFull if there is no room or, by the
        estimate, no time, and InvalidArgument if not even an empty queue holds so many.
        """
        if not sentences:
            return
        num_tokens = sum([len(sentence.ids) for sentence in sentences])
        first = sentences[0]
        self.forget(first.group)
        if first.deadline <= now:
            raise DeadlineExceeded("the deadline had passed before the sentences could wait")
        self._check_size(len(sentences), num_tokens)
        share = _PATIENT_SHARE if tokens_to_come is None else 1.0
        self._check_room(len(sentences), num_tokens, now, share)
        if tokens_to_come is not None:
            work = num_tokens + tokens_to_come
            asked = Request(len(sentences), work, first.beam_size, first.deadline)
            self._check_deadline(asked, first.group, loads, now)
        self._line(first.beam_size).extend(sentences, num_tokens)
        self._earliest_deadline = min(self._earliest_deadline, first.deadline)
        self.num_sentences += len(sentences)
        self.num_tokens += num_tokens

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

    def _check_room(
        self, num_sentences: int, num_tokens: int, now: float, share: float = 1.0
    ) -> None:
        if self._lack(num_sentences, num_tokens, share):
            self._sweep(now)
        if lack := self._lack(num_sentences, num_tokens, share):
            waiting, limits = self.num_sentences + self._num_expected, self._limits
            raise QueueFull(
                f"{waiting} sentences with {self.num_tokens} tokens are waiting, the limits are "
                f"{limits.max_sentences} and {limits.max_tokens}; try again later or with a "
                "smaller request",
                max(_MIN_RETRY_SECONDS, self._seconds_to_empty(now)),
                lack,
            )

    def _lack(self, num_sentences: int, num_tokens: int, share: float) -> Refusal | None:
        """What there isn't enough room for in a share of the queue; in all of it if it is empty."""
        expected = self._num_expected  # a sentence has a token, at least
        share = share if self.num_sentences else 1.0
        if self.num_sentences + expected + num_sentences > share * self._limits.max_sentences:
            return Refusal.QUEUE_SENTENCES
        if self.num_tokens + expected + num_tokens > share * self._limits.max_tokens:
            return Refusal.QUEUE_TOKENS
        return None

    def _seconds_to_empty(self, now: float) -> float:
        if (seconds_each := self.throughput.seconds_each(now)) is not None:
            return seconds_each * sum(
                line.num_tokens * width for width, line in self._lines.items()
            )
        # The oldest sentence's wait is how long the queue takes to move by its own length.
        return now - min((line.oldest for line in self._lines.values()), default=now)

    def _check_deadline(
        self, request: Request, group: Hashable, loads: Sequence[Load], now: float
    ) -> None:
        if request.deadline == math.inf:
            return
        seconds_each, remaining = self.throughput.seconds_each(now), request.deadline - now
        if seconds_each is None:
            return
        seconds = seconds_each * self._work_until(request, group, loads)
        if seconds > remaining:
            raise QueueFull(
                f"the answer would take about {seconds:.2g} s with what is waiting, the deadline "
                f"is in {remaining:.2g} s; allow more time, send less text or try again later",
                max(_MIN_RETRY_SECONDS, seconds - remaining),
                Refusal.DEADLINE,
            )

    def _work_until(self, request: Request, group: Hashable, loads: Sequence[Load]) -> int:
        """Row tokens to decode until a request is answered that comes now.

        With those in flight as a whole: what is done of them is as much as will be done of those
        who come after. Other widths, and those who are being read, get as much as this one, if they
        have it.
        """
        beam_size, num_tokens = request.beam_size, request.num_tokens
        line = self._lines.get(beam_size)
        own = beam_size * (line.tokens_until(group, num_tokens) if line else num_tokens)
        others = sum(
            min(own, width * line.num_tokens)
            for width, line in self._lines.items()
            if width != beam_size
        )
        in_flight = sum(load.row_tokens for load in loads)
        return own + others + min(own, self._work_expected) + in_flight

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
            first = line.first()
            if first.is_gone(now):
                self._gone.append(self._pop(line))
                continue
            num_tokens += len(first.ids)
            if joining and num_tokens > self._limits.max_joining_tokens:
                break
            joining.append(self._pop(line))
        if not line:
            del self._lines[beam_size]
        return joining

    def _line(self, beam_size: int) -> Line:
        if beam_size not in self._lines:
            self._lines[beam_size] = Line()
        return self._lines[beam_size]

    def _pop(self, line: Line) -> Sentence:
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
            self._gone += line.remove_gone(now)
        self._lines = {width: line for width, line in self._lines.items() if line}
        self.num_sentences = sum(map(len, self._lines.values()))
        self.num_tokens = sum(line.num_tokens for line in self._lines.values())
        waiting = (sentence for line in self._lines.values() for sentence in line)
        self._earliest_deadline = min((each.deadline for each in waiting), default=math.inf)
