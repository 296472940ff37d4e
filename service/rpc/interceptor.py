"""Counts every registered rpc in the metrics, whoever implements it: ours, health, reflection."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from inspect import isasyncgenfunction
from typing import Any, TypeAlias

import grpc
from google.protobuf.message import DecodeError

from service.metrics import Metrics, RpcMetrics

# Generic in grpc-stubs only, hence in quotes.
_Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
# Makes a request of its bytes. If gRPC does that, before the handler, failures are not counted.
_Parse: TypeAlias = Callable[[bytes], Any] | None
# (request streams, response streams) -> the ecosystem's name, the handler's attribute, its maker.
_KINDS = {
    (False, False): ("unary", "unary_unary", grpc.unary_unary_rpc_method_handler),
    (False, True): ("server_stream", "unary_stream", grpc.unary_stream_rpc_method_handler),
    (True, False): ("client_stream", "stream_unary", grpc.stream_unary_rpc_method_handler),
    (True, True): ("bidi_stream", "stream_stream", grpc.stream_stream_rpc_method_handler),
}


class MetricsInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    """Wraps the handler of each method at its first call.

    Messages that can't be parsed are counted as well, and answered with INVALID_ARGUMENT.

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
        parse = handler.request_deserializer
        if handler.request_streaming:
            return make_handler(count(behavior, rpc, None), parse, handler.response_serializer)
        return make_handler(count(behavior, rpc, parse), None, handler.response_serializer)


def _count_call(behavior: Callable[..., Awaitable[Any]], rpc: RpcMetrics, parse: _Parse) -> Any:
    async def call(request: Any, context: _Context) -> Any:
        async with _counted(rpc, context):
            return await behavior(parse(request) if parse else request, context)

    return call


def _count_stream(
    behavior: Callable[..., AsyncIterator[Any]], rpc: RpcMetrics, parse: _Parse
) -> Any:
    async def stream(request: Any, context: _Context) -> AsyncIterator[Any]:
        async with _counted(rpc, context):
            async for response in behavior(parse(request) if parse else request, context):
                yield response

    return stream


@asynccontextmanager
async def _counted(rpc: RpcMetrics, context: _Context) -> AsyncIterator[None]:
    rpc.started()
    started, code = time.perf_counter(), "UNKNOWN"
    try:
        async with _parsed(context):
            yield
        code = _code(context, "OK")
    except grpc.aio.AbortError:
        code = _code(context, "UNKNOWN")
        raise
    except asyncio.CancelledError:
        # gRPC cancels the handler in both cases; only the clock tells them apart.
        code = "DEADLINE_EXCEEDED" if _is_late(context) else "CANCELLED"
        raise
    except Exception as error:
        code = _code(context, "UNKNOWN")
        if _is_late(context):
            # The client has its answer, and gRPC failed to send it another one.
            code = "DEADLINE_EXCEEDED"
            raise asyncio.CancelledError from error
        raise
    finally:
        rpc.handled(code, time.perf_counter() - started)


@asynccontextmanager
async def _parsed(context: _Context) -> AsyncIterator[None]:
    try:
        yield
    except DecodeError:
        fault = "the request can't be parsed: it is another message, or its text is not UTF-8"
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, fault)


def _is_late(context: _Context) -> bool:
    remaining = context.time_remaining()
    return remaining is not None and remaining <= 0


def _code(context: _Context, default: str) -> str:
    """The code that the handler set, by name."""
    code: grpc.StatusCode | None = context.code()
    return code.name if code else default
