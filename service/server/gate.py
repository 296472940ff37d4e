"""Closes a server to new rpcs before gRPC does.

When gRPC stops, calls that it has received and that nobody has begun to serve end with CANCELLED,
which no client retries. Behind a closed gate they end with UNAVAILABLE, which every client may.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from service.rpc import HEALTH_SERVICE
from service.security import refusal

# Until callers have heard of it: the calls that are on their way arrive within that time.
SETTLING_SECONDS = 0.2


class Gate(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    """Lets everything through until it is closed, then only health checks."""

    def __init__(self) -> None:
        self._is_closed = False

    def close(self) -> None:
        """Refuses every rpc that has not begun."""
        self._is_closed = True

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        handler = await continuation(handler_call_details)
        is_health = handler_call_details.method.startswith(f"/{HEALTH_SERVICE}/")
        if handler is None or is_health or not self._is_closed:
            return handler
        fault = "the server is shutting down; try again, best on another one"
        return refusal(grpc.StatusCode.UNAVAILABLE, fault)
