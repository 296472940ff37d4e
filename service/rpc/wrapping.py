"""A handler between what an interceptor does as an rpc begins and as it ends.

What every call pays is kept small: a handler is wrapped once, not at each call, and beginnings and
ends are plain functions.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from inspect import isasyncgenfunction
from typing import Any, TypeAlias

import grpc
from google.protobuf.message import DecodeError

# Generic in grpc-stubs only, hence in quotes.
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
Ended: TypeAlias = Callable[[str], None]
"""Called at the end of an rpc with the code that its client sees."""
Begin: TypeAlias = Callable[[Context], Ended]
"""Called as an rpc begins, with its request on the way; may raise Refused."""
# Makes a request of its bytes. If gRPC does that, before the handler, nobody sees it fail.
_Parse: TypeAlias = Callable[[bytes], Any] | None
# (request streams, response streams) -> the handler's attribute, its maker.
_KINDS = {
    (False, False): ("unary_unary", grpc.unary_unary_rpc_method_handler),
    (False, True): ("unary_stream", grpc.unary_stream_rpc_method_handler),
    (True, False): ("stream_unary", grpc.stream_unary_rpc_method_handler),
    (True, True): ("stream_stream", grpc.stream_stream_rpc_method_handler),
}


class Refused(Exception):
    """An rpc that may not begin, and the status that it ends with."""

    def __init__(self, code: grpc.StatusCode, fault: str) -> None:
        super().__init__(code, fault)
        self.code, self.fault = code, fault


class Wrapper:
    """Wraps the handler of every method for one interceptor, and keeps what it has wrapped.

    make_begin: of a method's name.
    """

    def __init__(self, make_begin: Callable[[str], Begin]) -> None:
        self._make_begin = make_begin
        self._kept: dict[str, tuple[Handler, Handler]] = {}

    def wrap(self, method: str, handler: Handler) -> Handler:
        """The same handler, with what begins and ends its rpcs.

        A message that can't be parsed is answered with INVALID_ARGUMENT, in between as well.
        """
        kept = self._kept.get(method)
        # An interceptor behind this one may refuse one call, by another handler, and not the next.
        if kept is None or kept[0] is not handler:
            kept = self._kept[method] = handler, _wrap(handler, self._make_begin(method))
        return kept[1]


def _wrap(handler: Handler, begin: Begin) -> Handler:
    streams = (bool(handler.request_streaming), bool(handler.response_streaming))
    attribute, make_handler = _KINDS[streams]
    behavior = getattr(handler, attribute)
    wrapped = _wrap_stream if isasyncgenfunction(behavior) else _wrap_call
    parse = handler.request_deserializer
    if handler.request_streaming:
        return make_handler(wrapped(behavior, begin, None), parse, handler.response_serializer)
    return make_handler(wrapped(behavior, begin, parse), None, handler.response_serializer)


def _wrap_call(behavior: Callable[..., Awaitable[Any]], begin: Begin, parse: _Parse) -> Any:
    async def call(request: Any, context: Context) -> Any:
        try:
            ended = begin(context)
        except Refused as refused:
            await context.abort(refused.code, refused.fault)
        try:
            if parse:
                request = await _parsed(request, parse, context)
            response = await behavior(request, context)
        except BaseException as error:
            _end_with(error, context, ended)
            raise
        ended(_code(context, "OK"))
        return response

    return call


def _wrap_stream(behavior: Callable[..., AsyncIterator[Any]], begin: Begin, parse: _Parse) -> Any:
    async def stream(request: Any, context: Context) -> AsyncIterator[Any]:
        try:
            ended = begin(context)
        except Refused as refused:
            await context.abort(refused.code, refused.fault)
        try:
            if parse:
                request = await _parsed(request, parse, context)
            async for response in behavior(request, context):
                yield response
        except BaseException as error:
            _end_with(error, context, ended)
            raise
        ended(_code(context, "OK"))

    return stream


def _end_with(error: BaseException, context: Context, ended: Ended) -> None:
    """Tells the code of an rpc that failed; raises CancelledError in place of a late failure."""
    if isinstance(error, asyncio.CancelledError):
        # gRPC cancels the handler in both cases; only the clock tells them apart.
        ended("DEADLINE_EXCEEDED" if _is_late(context) else "CANCELLED")
    elif _is_fault(error) and _is_late(context):
        # The client has its answer, and gRPC failed to send it another one.
        ended("DEADLINE_EXCEEDED")
        raise asyncio.CancelledError from error
    else:
        ended(_code(context, "UNKNOWN"))


def _is_fault(error: BaseException) -> bool:
    """Whether it is neither an answer's status nor the end of the process."""
    return isinstance(error, Exception) and not isinstance(error, grpc.aio.AbortError)


async def _parsed(request: bytes, parse: Callable[[bytes], Any], context: Context) -> Any:
    try:
        return parse(request)
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
