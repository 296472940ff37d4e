"""How the sentences of a caller come into the queue: as one group, a window at a time.

An `Entrance` is that of one request, which may be refused; a `StreamEntrance` that of many texts
which come one after the other, and wait. For one event loop's thread.
"""

import asyncio
import itertools
from collections.abc import Hashable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from weakref import WeakKeyDictionary

from service.batching import Request
from service.decoding import DecodingOptions, Hypothesis
from service.engine import Engine
from service.errors import QueueFull
from service.translator.wakeups import wakeups

# A queue without room for a window has it again after about that long.
_ROOM_SECONDS = 0.05
Futures = Sequence[Future[list[Hypothesis]]]
# Who waits for room: one asks, and the others stand in line, however many there are.
_Lines = WeakKeyDictionary[Engine, asyncio.Lock]
_LINES: WeakKeyDictionary[asyncio.AbstractEventLoop, _Lines] = WeakKeyDictionary()


class Entrance:
    """Refuses a request if there is no room for its first window; the others wait."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._is_accepted = False

    def room(self, engine: Engine) -> AbstractContextManager[None]:
        """The block in which the texts are read and decoded. Raises what `Engine.room_for` does."""
        return engine.room_for(self._request)

    async def enter(
        self,
        engine: Engine,
        sources: Sequence[Sequence[int]],
        options: Sequence[DecodingOptions],
        deadline: float,
        tokens_to_come: int,
    ) -> Futures:
        """Hands a window over. Raises what `Engine.submit_all` does.

        tokens_to_come: of the windows after it.
        """
        if self._is_accepted:  # work has been done for it
            return await wait_for_room(engine, sources, options, deadline, self._request)
        futures = engine.submit_all(
            sources, options, deadline, self._request, tokens_to_come=tokens_to_come
        )
        self._is_accepted = True
        return futures


class StreamEntrance(Entrance):
    """Lets windows in one after the other, and keeps them waiting until there is room.

    All texts of a stream together have no more than `max_inside` sentences with the engine, as one
    long text would: otherwise a stream could fill the queue.
    """

    def __init__(self, max_inside: int) -> None:
        self._max_inside = max_inside
        self._num_inside = 0
        self._turn = asyncio.Lock()
        self._left = asyncio.Event()

    def room(self, engine: Engine) -> AbstractContextManager[None]:
        """A stream that could be read may wait."""
        return nullcontext()

    async def enter(
        self,
        engine: Engine,
        sources: Sequence[Sequence[int]],
        options: Sequence[DecodingOptions],
        deadline: float,
        tokens_to_come: int,
    ) -> Futures:
        """As in `Entrance`, but never raises QueueFull: DeadlineExceeded, where no room came."""
        async with self._turn:
            while self._num_inside and self._num_inside + len(sources) > self._max_inside:
                self._left.clear()
                await self._left.wait()
            futures = await wait_for_room(engine, sources, options, deadline, self)
        self._leave_after(futures)
        return futures

    def _leave_after(self, futures: Futures) -> None:
        """Makes room once all of a window has ended: the loop is woken once, not once each."""
        self._num_inside += (num_futures := len(futures))
        leave, wake = partial(self._leave, num_futures), wakeups().call
        numbers = itertools.count(1)  # its `next` is atomic, and workers call it side by side

        def count(_: Future[list[Hypothesis]]) -> None:
            if next(numbers) == num_futures:
                wake(leave)

        for future in futures:
            future.add_done_callback(count)

    def _leave(self, num_sentences: int) -> None:
        self._num_inside -= num_sentences
        self._left.set()


async def wait_for_room(
    engine: Engine,
    sources: Sequence[Sequence[int]],
    options: Sequence[DecodingOptions],
    deadline: float,
    group: Hashable,
) -> Futures:
    """Hands a window over as soon as there is room, first come, first served.

    Raises what `Engine.submit_more` does else.
    """
    async with _line(engine):
        while True:
            try:
                return engine.submit_more(sources, options, deadline, group)
            except QueueFull as full:
                await asyncio.sleep(min(_ROOM_SECONDS, full.retry_after_seconds))


def _line(engine: Engine) -> asyncio.Lock:
    lines = _LINES.setdefault(asyncio.get_running_loop(), WeakKeyDictionary())
    return lines.setdefault(engine, asyncio.Lock())
