"""Messages that come by the hundred: one a second of each kind is told, the others are counted.

A server that refuses for want of room has no time to say so each time: a line takes longer than the
refusal, and keeps everybody else on the event loop waiting for the disk.
"""

import re
import time
from collections.abc import Callable

_INTERVAL_SECONDS = 1.0
_NUMBER = re.compile(r"\d[\d.e+-]*")


class Repeats:
    """Which of the messages that repeat are told. For one thread.

    Kinds are kept for good: only for messages of a closed set, numbers in them aside.
    clock: seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next: dict[str, float] = {}
        self._left_out: dict[str, int] = {}

    def told(self, kind: str) -> int | None:
        """None if this one is left out, else how many of its kind were since the last one told.

        Messages that differ in numbers only are of one kind.
        """
        kind, now = _NUMBER.sub("", kind), self._clock()
        if now < self._next.get(kind, now):
            self._left_out[kind] = self._left_out.get(kind, 0) + 1
            return None
        self._next[kind] = now + _INTERVAL_SECONDS
        return self._left_out.pop(kind, 0)
