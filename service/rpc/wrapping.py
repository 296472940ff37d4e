"""A handler inside a block of code that sees how its rpc ends: what the interceptors share."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from inspect import isasyncgenfunction
from typing import Any, TypeAlias

import grpc
from google.protobuf.message import DecodeError

# Generic in grpc-stubs only, hence in quotes.
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
Around: TypeAlias = Callable[[Context], AbstractAsyncContextManager[None]]
# Makes a request of its bytes. If gRPC does that, before the handler, nobody sees it fail.
_Parse: TypeAlias = Callable[[bytes], Any] | None
# (request streams, response streams) -> the handler's attribute, its maker.
_KINDS = {
    (False, False): ("unary_unary", grpc.unary_unary_rpc_method_handler),
    (False, True): ("unary_stream", grpc.unary_stream_rpc_method_handler),
    (True, False): ("stream_unary", grpc.stream_unary_rpc_method_handler),
    (True, True): ("stream_stream", grpc.stream_stream_rpc_method_handler),
}


def wrap(handler: Handler, around: Around) -> Handler:
    """The same handler within `around`, whose block ends when the rpc does.

    A message that can't be parsed is answered with INVALID_ARGUMENT, inside the block as well.
    """
    streams = (bool(handler.request_streaming), bool(handler.response_streaming))
    attribute, make_handler = _KINDS[streams]
    behavior = getattr(handler, attribute)
    wrapped = _wrap_stream if isasyncgenfunction(behavior) else _wrap_call
    parse = handler.request_deserializer
    if handler.request_streaming:
        return make_handler(wrapped(behavior, around, None), parse, handler.response_serializer)
    return make_handler(wrapped(behavior, around, parse), None, handler.response_serializer)


@asynccontextmanager
async def ending(context: Context, ended: Callable[[str], None]) -> AsyncIterator[None]:
    """Calls `ended` at the end of a block with the code that the rpc's client sees."""
    code = "UNKNOWN"
    try:
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
        ended(code)


def _wrap_call(behavior: Callable[..., Awaitable[Any]], around: Around, parse: _Parse) -> Any:
    async def call(request: Any, context: Context) -> Any:
        async with around(context):
            return await behavior(await _parsed(request, parse, context), context)

    return call


def _wrap_stream(behavior: Callable[..., AsyncIterator[Any]], around: Around, parse: _Parse) -> Any:
    async def stream(request: Any, context: Context) -> AsyncIterator[Any]:
        async with around(context):
            async for response in behavior(await _parsed(request, parse, context), context):
                yield response

    return stream


async def _parsed(request: Any, parse: _Parse, context: Context) -> Any:
    try:
        return parse(request) if parse else request
    except DecodeError:
        fault = "the request can't be parsed: it is another message, or its text is not UTF-8"
        await context.abort(grpc.StatusCode.INVALID_ARGUMENT, fault)


def _is_late(context: Context) -> bool:
    remaining = context.time_remaining()
    return remaining is not None and remaining <= 0


def _code(context: Context, default: str) -> str:
    """The code that the handler set, by name."""
    code: grpc.StatusCode | None = context.code()
    return code.name if code else default
