"""A stream in this process: the place of gRPC's call between a client's thread and an event loop.

the client's thread   exchanged() <── answers ──────────── write()
a thread of its own   requests ────── one at a time ─────> read()      the loop: a `Stream`
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any

import grpc

from service.errors import DeadlineExceeded
from service.pb import translation_pb2 as pb
from service.rpc import Exchange

_EOF: Any = grpc.aio.EOF  # type: ignore[attr-defined]
Run = Callable[[Exchange], Coroutine[Any, Any, None]]


class LocalCall:
    """What `exchanged` takes for the call of an rpc: answers to iterate over, and to cancel.

    Raises what `run` raises, after the answers, and DeadlineExceeded.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        run: Run,
        timeout_seconds: float | None,
        requests: Iterator[pb.TranslateStreamRequest],
    ) -> None:
        self._loop = loop
        self._requests = requests
        self._timeout = timeout_seconds
        self._deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        self._incoming: asyncio.Queue[object] = asyncio.Queue()  # `requests` knows how many
        self._answers: SimpleQueue[bytes | None] = SimpleQueue()
        self.done: Future[None] = asyncio.run_coroutine_threadsafe(self._run(run), loop)
        self.done.add_done_callback(lambda _: self._answers.put(None))
        # As gRPC's, it waits for who sends; a caller who never goes on doesn't hold the process.
        Thread(target=self._send, name="local-stream", daemon=True).start()

    def __iter__(self) -> Iterator[pb.TranslateStreamResponse]:
        while (data := self._answers.get()) is not None:
            yield pb.TranslateStreamResponse.FromString(data)
        self.done.result()

    def cancel(self) -> None:
        self.done.cancel()

    async def read(self) -> object:
        """The next message, serialised, or gRPC's mark for the end."""
        return await self._incoming.get()

    async def write(self, data: bytes) -> None:
        self._answers.put(data)

    def time_remaining(self) -> float | None:
        return None if self._deadline is None else self._deadline - time.monotonic()

    async def _run(self, run: Run) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                await run(self)
        except TimeoutError as error:
            raise DeadlineExceeded("the deadline of the stream passed") from error

    def _send(self) -> None:
        for request in self._requests:
            self._put(request.SerializeToString())
        self._put(_EOF)

    def _put(self, message: object) -> None:
        with suppress(RuntimeError):  # the loop is closed, and nobody reads any more
            self._loop.call_soon_threadsafe(self._incoming.put_nowait, message)
