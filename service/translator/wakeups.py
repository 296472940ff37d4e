"""`Wakeups`: what other threads have an event loop call, many calls at one wake-up.

To wake a loop is a system call, in which a worker gives up the interpreter's lock and may wait long
to have it back; and a step of decoding answers several requests.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from weakref import WeakKeyDictionary, ref


class Wakeups:
    """Like `call_soon_threadsafe` of one loop, but that the loop is woken only if it has to be."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = ref(loop)  # which the table below is not to keep
        self._calls: deque[Callable[[], None]] = deque()
        self._is_woken = False

    def call(self, callback: Callable[[], None]) -> None:
        """Has the loop call something that doesn't raise; from any thread, in order."""
        self._calls.append(callback)
        # Two threads may both wake it, which is harmless; that nobody does can't be: `_run` takes
        # its note back before it looks for calls.
        if not self._is_woken:
            self._is_woken = True
            if loop := self._loop():
                loop.call_soon_threadsafe(self._run)

    def _run(self) -> None:
        self._is_woken = False
        while self._calls:
            self._calls.popleft()()


_OF_LOOPS: WeakKeyDictionary[asyncio.AbstractEventLoop, Wakeups] = WeakKeyDictionary()


def wakeups() -> Wakeups:
    """Those of the running loop."""
    loop = asyncio.get_running_loop()
    found = _OF_LOOPS.get(loop)
    if found is None:
        found = _OF_LOOPS[loop] = Wakeups(loop)
    return found
