"""Counts the rpcs that a stop must wait for, and closes the server to new ones.

gRPC's own stop won't do: a call that arrives while it stops ends with CANCELLED, which no client
retries, and now and then it waits for a call that nobody serves. Behind a closed gate calls end
with UNAVAILABLE, which every client may retry, and whoever is inside is known.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from service.rpc import HEALTH_SERVICE, REFLECTION_SERVICES
from service.rpc.wrapping import Context, Ended, Refused, Wrapper
from service.security import refusal

_FAULT = "the server is shutting down; try again, best on another one"


class Gate(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    """Lets everything through until it is closed, then only health checks.

    An rpc is inside from when its request has been received until its status has been sent. Health
    checks and reflection aren't counted: nobody loses anything by their end, and some never end by
    themselves. Other streams must end when `closed` is set. To be used on one event loop's thread.
    """

    def __init__(self) -> None:
        self.closed = asyncio.Event()
        self._inside = 0
        self._empty = asyncio.Event()
        self._empty.set()
        self._wrapper = Wrapper(lambda method: self._enter)

    @property
    def num_inside(self) -> int:
        """Rpcs that were let through and have no status yet."""
        return self._inside

    def close(self) -> None:
        """Refuses every rpc that has not begun."""
        self.closed.set()

    async def wait_until_empty(self, timeout: float) -> None:
        """Returns once nobody is inside, or after so many seconds."""
        try:
            await asyncio.wait_for(self._empty.wait(), timeout)
        except TimeoutError:
            pass

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        service, _, _ = method.removeprefix("/").partition("/")
        if handler is None or service == HEALTH_SERVICE:
            return handler
        if self.closed.is_set():
            return refusal(grpc.StatusCode.UNAVAILABLE, _FAULT)
        if service in REFLECTION_SERVICES:
            return handler
        return self._wrapper.wrap(method, handler)

    def _enter(self, context: Context) -> Ended:
        if self.closed.is_set():  # while its request was on the way
            raise Refused(grpc.StatusCode.UNAVAILABLE, _FAULT)
        self._inside += 1
        self._empty.clear()
        # The end of the handler is too early: the answer would not have been sent.
        context.add_done_callback(self._leave)  # type: ignore[arg-type]  # no Protocol
        return lambda code: None

    def _leave(self, context: Context) -> None:
        self._inside -= 1
        if self._inside == 0:
            self._empty.set()
