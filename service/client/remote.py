"""A typed, blocking client. It takes and returns the protocol's messages, which document it."""

from collections.abc import Generator, Iterable
from contextlib import closing
from functools import partial
from typing import Any, NoReturn

import grpc
from google.rpc.code_pb2 import Code
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from service import errors
from service.client.access import PLAINTEXT, Access
from service.client.streaming import DEFAULT_MAX_UNANSWERED, check_unanswered, exchanged
from service.config import DEFAULT_ADDRESS
from service.pb import translation_pb2 as pb
from service.pb.translation_pb2_grpc import TranslationServiceStub

DEFAULT_TIMEOUT_SECONDS = 60.0
_OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
_ERRORS: dict[str, type[errors.TranslationError]] = {
    error.status: error
    for error in (
        errors.InvalidArgument,
        errors.UnknownModel,
        errors.Unauthenticated,
        errors.DeadlineExceeded,
        errors.Cancelled,
        errors.Unavailable,
        errors.WorkerFailed,
    )
}


class Client:
    """A connection to the server at `address`, made at the first call; a context manager.

    Raises ConfigError if `access` names files that can't be used; calls raise the exceptions of
    `service.errors` that the server raised.
    """

    def __init__(
        self,
        address: str = DEFAULT_ADDRESS,
        timeout_seconds: float | None = DEFAULT_TIMEOUT_SECONDS,
        access: Access = PLAINTEXT,
    ) -> None:
        self._address = address
        self._timeout = timeout_seconds
        self._access = access
        self._channel = access.channel(address, _OPTIONS)
        self._stub: Any = TranslationServiceStub(self._channel)  # type: ignore[no-untyped-call]

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._channel.close()

    def translate(self, request: pb.TranslateRequest) -> pb.TranslateResponse:
        response: pb.TranslateResponse = self._call(self._stub.Translate, request)
        return response

    def translate_stream(
        self,
        segments: Iterable[pb.Segment],
        settings: pb.TranslateStreamSettings | None = None,
        *,
        max_unanswered: int = DEFAULT_MAX_UNANSWERED,
        timeout_seconds: float | None = None,
    ) -> Generator[tuple[str, pb.Translation | errors.TranslationError], None, None]:
        """Each segment's id with its translation, or why there is none, as soon as it is there.

        Segments are taken on another thread, only as many as `max_unanswered` ahead of the answers.
        Leaving the loop, or closing the iterator, cancels the rest. What ends the whole stream is
        raised; after Unavailable, segments without an answer may be sent again in another stream.
        timeout_seconds: of the whole stream. Raises InvalidArgument if `max_unanswered` is below 1.
        """
        check_unanswered(max_unanswered)
        method = partial(
            self._stub.TranslateStream, timeout=timeout_seconds, metadata=self._access.metadata
        )
        return self._streamed(
            exchanged(method, settings or pb.TranslateStreamSettings(), segments, max_unanswered)
        )

    def _streamed(
        self, exchange: Generator[pb.TranslateStreamResponse, None, None]
    ) -> Generator[tuple[str, pb.Translation | errors.TranslationError], None, None]:
        try:
            yield from outcomes(exchange)
        except grpc.RpcError as error:
            reraise(error, self._address, self._access)

    def score(self, request: pb.ScoreRequest) -> pb.ScoreResponse:
        response: pb.ScoreResponse = self._call(self._stub.Score, request)
        return response

    def list_models(self) -> pb.ListModelsResponse:
        response: pb.ListModelsResponse = self._call(self._stub.ListModels, pb.ListModelsRequest())
        return response

    def _call(self, method: Any, request: Any) -> Any:
        try:
            return method(request, timeout=self._timeout, metadata=self._access.metadata)
        except grpc.RpcError as error:
            reraise(error, self._address, self._access)


def reraise(error: Any, address: str, access: Access) -> NoReturn:
    """Raises the exception that the server raised, instead of the `grpc.RpcError` it came as."""
    code, message = error.code(), explain(error, address, access)
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and (seconds := _retry_after(error)):
        raise errors.QueueFull(message, seconds) from None
    if code is grpc.StatusCode.FAILED_PRECONDITION:
        raise errors.ConfigError(address, [message]) from None
    raise _named(code.name, message) from None


def outcomes(
    exchange: Generator[pb.TranslateStreamResponse, None, None],
) -> Generator[tuple[str, pb.Translation | errors.TranslationError], None, None]:
    """The id of each segment, and what became of it."""
    with closing(exchange) as answers:
        for answer in answers:
            yield answer.id, _outcome(answer)


def _outcome(answer: pb.TranslateStreamResponse) -> pb.Translation | errors.TranslationError:
    if answer.HasField("error"):
        return _named(Code.Name(answer.error.code), answer.error.message)
    return answer.translation


def _named(code: str, message: str) -> errors.TranslationError:
    if code in _ERRORS:
        return _ERRORS[code](message)
    return errors.TranslationError(f"{code}: {message}")


def explain(error: Any, address: str, access: Access) -> str:
    """What an rpc ended with: where that is, if it is about the connection, and the way out."""
    code, message = error.code(), error.details()
    if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNAUTHENTICATED):
        message = f"{address}: {message}"
    return "; ".join(filter(None, [message, access.hint(code, message)]))


def _retry_after(error: Any) -> float | None:
    """Seconds of the status' RetryInfo, if it has one."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            for detail in Status.FromString(value).details:
                if detail.Is(RetryInfo.DESCRIPTOR):
                    info = RetryInfo.FromString(detail.value)
                    return float(info.retry_delay.ToNanoseconds() / 1e9)
    return None
