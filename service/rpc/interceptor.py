"""Counts every registered rpc in the metrics, whoever implements it: ours, health, reflection."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from inspect import isasyncgenfunction
from typing import Any, TypeAlias

import grpc

from service.metrics import Metrics, RpcMetrics

# Generic in grpc-stubs only, hence in quotes.
_Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
# (request streams, response streams) -> the ecosystem's name, the handler's attribute, its maker.
_KINDS = {
    (False, False): ("unary", "unary_unary", grpc.unary_unary_rpc_method_handler),
    (False, True): ("server_stream", "unary_stream", grpc.unary_stream_rpc_method_handler),
    (True, False): ("client_stream", "stream_unary", grpc.stream_unary_rpc_method_handler),
    (True, True): ("bidi_stream", "stream_stream", grpc.stream_stream_rpc_method_handler),
}


class MetricsInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    """Wraps the handler of each method at its first call.

    Unknown methods aren't counted: their names are the client's, and labels are a closed set.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._handlers: dict[str, _Handler] = {}

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        method = handler_call_details.method
        if method not in self._handlers:
            handler = await continuation(handler_call_details)
            if handler is None:
                return None
            self._handlers[method] = self._wrap(method, handler)
        return self._handlers[method]

    def _wrap(self, path: str, handler: _Handler) -> _Handler:
        streams = (bool(handler.request_streaming), bool(handler.response_streaming))
        kind, attribute, make_handler = _KINDS[streams]
        _, service, method = path.split("/")
        rpc = self._metrics.rpc(kind, service, method)
        behavior = getattr(handler, attribute)
        count = _count_stream if isasyncgenfunction(behavior) else _count_call
        return make_handler(
            count(behavior, rpc), handler.request_deserializer, handler.response_serializer
        )


def _count_call(behavior: Callable[..., Awaitable[Any]], rpc: RpcMetrics) -> Any:
    async def call(request: Any, context: _Context) -> Any:
        with _counted(rpc, context):
            return await behavior(request, context)

    return call


def _count_stream(behavior: Callable[..., AsyncIterator[Any]], rpc: RpcMetrics) -> Any:
    async def stream(request: Any, context: _Context) -> AsyncIterator[Any]:
        with _counted(rpc, context):
            async for response in behavior(request, context):
                yield response

    return stream


@contextmanager
def _counted(rpc: RpcMetrics, context: _Context) -> Iterator[None]:
    rpc.started()
    started, code = time.perf_counter(), "UNKNOWN"
    try:
        yield
        code = _code(context)
    except grpc.aio.AbortError:
        code = _code(context)
        raise
    except asyncio.CancelledError:
        # gRPC cancels the handler in both cases; only the clock tells them apart.
        remaining = context.time_remaining()
        is_late = remaining is not None and remaining <= 0
        code = "DEADLINE_EXCEEDED" if is_late else "CANCELLED"
        raise
    finally:
        rpc.handled(code, time.perf_counter() - started)


def _code(context: _Context) -> str:
    """The code that the handler set, by name; gRPC's default is OK."""
    code: grpc.StatusCode | None = context.code()
    return code.name if code else "OK"
