"""Sentences through the engine, a long request in windows so that it doesn't fill the queue.

At most `MAX_AT_ONCE` sentences of a request are in the engine, however long it is. They are one
group there: other requests take turns with it.
"""

import asyncio
import itertools
import math
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from functools import partial

from service.batching import Request
from service.decoding import DecodingOptions, Hypothesis
from service.engine import Engine
from service.translator.entrance import Entrance, Futures
from service.translator.wakeups import wakeups

# They fill the batches of a few workers, and are decoded in a tenth of a second or so.
MAX_AT_ONCE = 256
_NUM_WINDOWS = 4
# A token has about as many code points in European languages, and fewer in others.
_TOKEN_LENGTH = 4


def foreseen(lengths: Sequence[int], beam_size: int, deadline: float | None) -> Request:
    """What can be known of texts of so many code points before they are read.

    Nearly each is a sentence, or more. deadline: seconds on the monotonic clock.
    """
    num_tokens = len(lengths) + sum(lengths) // _TOKEN_LENGTH
    until = math.inf if deadline is None else deadline
    return Request(window_size(len(lengths)), num_tokens, beam_size, until)


def window_size(num_sources: int, max_at_once: int = MAX_AT_ONCE) -> int:
    """How many of so many sources are submitted together; the first of them need room at once."""
    return num_sources if num_sources <= max_at_once else -(-max_at_once // _NUM_WINDOWS)


async def decode(
    engine: Engine,
    sources: Sequence[Sequence[int]],
    options: DecodingOptions | Sequence[DecodingOptions],
    request: Request,
    take: Callable[[list[list[Hypothesis]]], Awaitable[None]],
    max_at_once: int = MAX_AT_ONCE,
    entrance: Entrance | None = None,
) -> None:
    """Has all sources decoded. Cancelling it cancels those that aren't.

    options: of all sources, or of each.
    request: which they are, with its deadline.
    take: gets the hypotheses of all sources, in order, a window at a time.
    max_at_once: sources that are decoded or wait to be, or have results that weren't taken yet.
    entrance: by default that of the request: the first window is refused if the queue is full, or
    if the deadline can't be met for all sources; the others wait for room, since work has been done
    for them.
    Raises what `take`, `Engine.submit_all` and its futures raise.
    """
    submitted, entrance = deque[Futures](), entrance or Entrance(request)
    each = [options] * len(sources) if isinstance(options, DecodingOptions) else options
    size = max(1, window_size(len(sources), max_at_once))
    to_come = sum(map(len, sources[size:]))
    try:
        for start in range(0, len(sources), size):
            if submitted and (len(submitted) + 1) * size > max_at_once:
                await take(await _results(submitted[0]))
                submitted.popleft()
            window = sources[start : start + size], each[start : start + size]
            submitted.append(await entrance.enter(engine, *window, request.deadline, to_come))
        while submitted:
            await take(await _results(submitted[0]))
            submitted.popleft()
    finally:
        for future in itertools.chain.from_iterable(submitted):
            future.cancel()


async def _results(futures: Futures) -> list[list[Hypothesis]]:
    """Waits for all futures, or raises the first failure; wakes the loop once, not once each."""
    settled, wake = asyncio.get_running_loop().create_future(), wakeups().call
    # The callback knows how many there are, not which: futures that know themselves are garbage
    # that only a full collection finds, thousands at a time.
    num_futures = len(futures)
    numbers = itertools.count(1)  # its `next` is atomic, and workers call it side by side

    def settle(error: BaseException | None) -> None:
        if not settled.done():
            settled.set_exception(error) if error else settled.set_result(None)

    def count(future: Future[list[Hypothesis]]) -> None:
        is_last = next(numbers) == num_futures
        if not future.cancelled() and (is_last or future.exception()):
            wake(partial(settle, future.exception()))

    for future in futures:
        future.add_done_callback(count)
    await settled
    return [future.result() for future in futures]
