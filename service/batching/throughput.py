"""How fast sentences are worked off, measured while they are."""

import math


class Throughput:
    """Rows stepped in a second, and steps for a source token, of the last seconds.

    Only time in which somebody waited counts: a batch that isn't full could do more. Older numbers
    weigh exponentially less, and the estimate is unknown before there was enough such time, and
    again some seconds after: whoever is refused by it is never refused for good.

    memory_seconds: after that long, a number weighs 1/e.
    min_seconds: of that time, so weighted, that make an estimate.
    """

    def __init__(self, memory_seconds: float = 5.0, min_seconds: float = 0.25) -> None:
        self._memory_seconds = memory_seconds
        self._min_seconds = min_seconds
        self._last = -math.inf
        self._was_full = False
        self._seconds = self._rows = self._steps = self._tokens = 0.0

    def stepped(self, rows: int, somebody_waits: bool, now: float) -> None:
        """A worker has decoded a token in each of its rows."""
        elapsed, self._last = now - self._last, now
        self._fade(elapsed)
        if somebody_waits and self._was_full:
            self._seconds += elapsed
            self._rows += rows
        self._was_full = somebody_waits

    def finished(self, source_tokens: int, steps: int) -> None:
        """So many steps were needed for sentences of so many tokens."""
        self._tokens += source_tokens
        self._steps += steps

    def seconds_each(self, now: float) -> float | None:
        """How long a source token takes, counted once for every beam; None if it isn't known."""
        seconds = self._seconds * self._weight(now - self._last)
        if seconds < self._min_seconds or not (self._rows and self._steps):
            return None
        return (self._seconds / self._rows) * (self._steps / self._tokens)

    def _fade(self, elapsed: float) -> None:
        weight = self._weight(elapsed)
        self._seconds *= weight
        self._rows *= weight
        self._steps *= weight
        self._tokens *= weight

    def _weight(self, elapsed: float) -> float:
        return math.exp(-elapsed / self._memory_seconds)
