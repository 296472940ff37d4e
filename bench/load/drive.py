"""Sending the calls of a plan. Requests and answers stay bytes, so that the generator is cheap."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import cycle
from typing import Any, TypeAlias, cast

import grpc

from bench.load.plan import Call
from bench.load.report import Outcome

METHOD = "/nmt.v1.TranslationService/Translate"
TIMEOUT_SECONDS = 30.0
_CONNECTIONS, _CONNECT_SECONDS = 4, 5.0
_LEAD_SECONDS = 0.05
_OPTIONS = [
    ("grpc.use_local_subchannel_pool", 1),  # else all channels share one connection
    ("grpc.max_receive_message_length", -1),
]

Send: TypeAlias = Callable[[bytes], Awaitable[bytes]]


def open_loop(address: str, calls: Sequence[Call]) -> list[Outcome]:
    """Sends every call when it is due, whatever became of the others; returns when all are over.

    Raises ConnectionError if there is no server.
    """
    return asyncio.run(_open_loop(address, calls))


def closed_loop(
    address: str, calls: Sequence[Call], concurrency: int, seconds: float
) -> list[Outcome]:
    """`concurrency` callers, each with its next call when its last one is answered.

    They take the calls in turn, again from the beginning if need be; a call is due when it is sent.
    Raises ConnectionError if there is no server.
    """
    return asyncio.run(_closed_loop(address, calls, concurrency, seconds))


async def _open_loop(address: str, calls: Sequence[Call]) -> list[Outcome]:
    loop = asyncio.get_running_loop()
    async with _connected(address) as send:
        start = loop.time() + _LEAD_SECONDS
        tasks = []
        for call in calls:
            # Also when late: without giving way, nobody would be sent or answered.
            await asyncio.sleep(start + call.due - loop.time())
            tasks.append(asyncio.create_task(_outcome(send, call, start)))
        return await asyncio.gather(*tasks)


async def _closed_loop(
    address: str, calls: Sequence[Call], concurrency: int, seconds: float
) -> list[Outcome]:
    loop = asyncio.get_running_loop()
    supply, outcomes = cycle(calls), list[Outcome]()
    async with _connected(address) as send:
        start = loop.time()

        async def caller() -> None:
            while (now := loop.time() - start) < seconds:
                call = next(supply)
                due_now = Call(now, call.request, call.num_contents)
                outcomes.append(await _outcome(send, due_now, start))

        await asyncio.gather(*(caller() for _ in range(concurrency)))
    return outcomes


@asynccontextmanager
async def _connected(address: str) -> AsyncIterator[Send]:
    """A function that sends a request over one of several connections, each used in turn."""
    async with AsyncExitStack() as stack:
        channels = [
            await stack.enter_async_context(grpc.aio.insecure_channel(address, options=_OPTIONS))
            for _ in range(_CONNECTIONS)
        ]
        await _ready(address, channels)
        # Without serialisers, which the stubs of grpc demand, a message is its bytes.
        methods = cycle([cast(Any, channel).unary_unary(METHOD) for channel in channels])
        yield lambda request: next(methods)(request, timeout=TIMEOUT_SECONDS)


async def _ready(address: str, channels: Sequence[grpc.aio.Channel]) -> None:
    ready = asyncio.gather(*(channel.channel_ready() for channel in channels))
    try:
        await asyncio.wait_for(ready, _CONNECT_SECONDS)
    except TimeoutError:
        raise ConnectionError(f"nobody listens on {address}") from None


async def _outcome(send: Send, call: Call, start: float) -> Outcome:
    loop = asyncio.get_running_loop()
    sent, code = loop.time() - start, "OK"
    try:
        await send(call.request)
    except grpc.aio.AioRpcError as error:
        code = error.code().name
    return Outcome(call.due, sent, loop.time() - start, call.num_contents, code)
