"""From exceptions to gRPC statuses: the only place that knows both.

A `TranslationError` names its status; anything else is a fault of ours and becomes INTERNAL with a
message that says nothing of the text or the traceback, which go to the log.
"""

import itertools
import logging
import math
from bisect import bisect_right
from typing import Any, NoReturn

import grpc
from google.protobuf.duration_pb2 import Duration
from google.rpc.code_pb2 import Code
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from service.errors import QueueFull, TranslationError

# Trailers above 8 KiB are refused by gRPC itself, and messages may quote what the client sent. In
# bytes as they are sent; the details of a status hold the message once more.
MAX_MESSAGE_BYTES = 3000
_ELLIPSIS = "…"
_DETAILS_KEY = "grpc-status-details-bin"
# What the retry policies of gRPC clients heed; RetryInfo is for those who retry by hand.
_PUSHBACK_KEY = "grpc-retry-pushback-ms"
_LOG = logging.getLogger(__name__)


async def abort(context: "grpc.aio.ServicerContext[Any, Any]", error: Exception) -> NoReturn:
    """Ends the rpc with the status of `error`; RESOURCE_EXHAUSTED says when to try again."""
    status = status_of(error)
    code, message = grpc.StatusCode[Code.Name(status.code)], status.message
    if isinstance(error, QueueFull):
        details = (_DETAILS_KEY, status.SerializeToString())
        pushback = _pushback(error.retry_after_seconds, context.time_remaining())
        # What is given here replaces what was set before.
        trailers = context.trailing_metadata() or ()
        await context.abort(code, message, (*trailers, details, *pushback))
    await context.abort(code, message)


def status_of(error: Exception) -> Status:
    """What a client is told of an error; the log is told what nobody expected."""
    if not isinstance(error, TranslationError):
        _LOG.error("an rpc failed unexpectedly", exc_info=error)
        return Status(code=Code.INTERNAL, message="internal error; the server's log has more")
    status = Status(code=Code.Value(error.status), message=_shorten(str(error)))
    if isinstance(error, QueueFull):
        delay = Duration()
        delay.FromNanoseconds(int(error.retry_after_seconds * 1e9))
        status.details.add().Pack(RetryInfo(retry_delay=delay))
    return status


def _pushback(seconds: float, remaining: float | None) -> tuple[tuple[str, str], ...]:
    """Who can't wait so long is left to their own backoff, and may find another server."""
    if remaining is not None and remaining <= seconds:
        return ()
    return ((_PUSHBACK_KEY, str(math.ceil(seconds * 1000))),)


def _shorten(message: str) -> str:
    """`message` as one line that fits into a trailer."""
    line = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in message[: MAX_MESSAGE_BYTES + 1]
    )
    sizes = list(itertools.accumulate(map(_encoded_size, line)))
    if not sizes or sizes[-1] <= MAX_MESSAGE_BYTES:
        return line
    return line[: bisect_right(sizes, MAX_MESSAGE_BYTES - _encoded_size(_ELLIPSIS))] + _ELLIPSIS


def _encoded_size(character: str) -> int:
    """Bytes in a `grpc-message`, where all but ASCII is written as `%C3%A9`."""
    return 1 if " " <= character <= "~" and character != "%" else 3 * len(character.encode())
