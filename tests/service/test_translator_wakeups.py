"""What threads have an event loop call: all of it, in order, at few wake-ups."""

import asyncio
import gc
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context
from functools import partial
from typing import TypeVarTuple

from service.translator.wakeups import wakeups

_Arguments = TypeVarTuple("_Arguments")


class CountingLoop(asyncio.SelectorEventLoop):
    """A loop that counts how often a thread woke it."""

    num_woken = 0

    def call_soon_threadsafe(
        self,
        callback: Callable[[*_Arguments], object],
        *arguments: *_Arguments,
        context: Context | None = None,
    ) -> asyncio.Handle:
        self.num_woken += 1
        return super().call_soon_threadsafe(callback, *arguments, context=context)


async def called_from(num_threads: int, calls_each: int) -> list[tuple[int, int]]:
    """What threads had the loop call while it was busy with starting and joining them."""
    heard, wake = list[tuple[int, int]](), wakeups().call

    def work(thread: int) -> None:
        for number in range(calls_each):
            wake(partial(heard.append, (thread, number)))

    with ThreadPoolExecutor(num_threads) as pool:
        list(pool.map(work, range(num_threads)))
    done = asyncio.Event()
    wake(done.set)
    await done.wait()
    return heard


def test_every_call_is_made_and_those_of_a_thread_in_its_order() -> None:
    heard = asyncio.run(called_from(num_threads=4, calls_each=200))
    for thread in range(4):
        assert [number for who, number in heard if who == thread] == list(range(200))
    assert len(heard) == 4 * 200


def test_a_busy_loop_is_woken_once_for_all_calls_of_a_thread() -> None:
    with asyncio.Runner(loop_factory=CountingLoop) as runner:
        heard = runner.run(called_from(num_threads=1, calls_each=50))
        loop = runner.get_loop()
        assert isinstance(loop, CountingLoop)
        assert (len(heard), loop.num_woken) == (50, 1)


def test_a_loop_is_woken_again_for_what_comes_after_it_has_looked() -> None:
    async def again() -> list[list[tuple[int, int]]]:
        return [await called_from(num_threads=1, calls_each=2) for _ in range(3)]

    assert asyncio.run(again()) == [[(0, 0), (0, 1)]] * 3


def test_a_loop_that_has_ended_is_not_kept() -> None:
    async def reference() -> weakref.ref[asyncio.AbstractEventLoop]:
        await called_from(num_threads=1, calls_each=1)
        return weakref.ref(asyncio.get_running_loop())

    loop = asyncio.run(reference())
    gc.collect()
    assert loop() is None
