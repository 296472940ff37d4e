"""The client's side of `TranslateStream`: segments go out while their answers come in."""

from collections.abc import Callable, Generator, Iterable, Iterator
from threading import Semaphore
from typing import Any

from service.errors import InvalidArgument
from service.pb import translation_pb2 as pb

# Segments that keep a server busy, and about as many as it accepts at once by default.
DEFAULT_MAX_UNANSWERED = 256
# Call of an rpc whose messages are streamed in both directions.
_Method = Callable[[Iterator[pb.TranslateStreamRequest]], Any]


def check_unanswered(max_unanswered: int) -> None:
    """Raises InvalidArgument for a stream that nothing could be sent on."""
    if max_unanswered < 1:
        raise InvalidArgument(f"max_unanswered is {max_unanswered}; it must be at least 1")


def exchanged(
    method: _Method,
    settings: pb.TranslateStreamSettings,
    segments: Iterable[pb.Segment],
    max_unanswered: int,
) -> Generator[pb.TranslateStreamResponse, None, None]:
    """The answers as they come; closing the iterator cancels the rest.

    Raises what iterating over `segments` raises, after the answers to those before, and
    `grpc.RpcError`.
    """
    outgoing = _Outgoing(settings, segments, max_unanswered)
    call = method(iter(outgoing))
    try:
        for response in call:
            outgoing.answered()
            yield response
    finally:
        outgoing.end()
        call.cancel()
    if outgoing.fault:
        raise outgoing.fault


class _Outgoing:
    """The messages that go out, taken by a thread of gRPC's: never too many without an answer."""

    def __init__(
        self,
        settings: pb.TranslateStreamSettings,
        segments: Iterable[pb.Segment],
        max_unanswered: int,
    ) -> None:
        self._first = pb.TranslateStreamRequest(settings=settings)
        self._segments = segments
        self._room = Semaphore(max_unanswered)
        self._is_over = False
        self.fault: BaseException | None = None

    def __iter__(self) -> Iterator[pb.TranslateStreamRequest]:
        yield self._first
        try:
            segments = iter(self._segments)
            while self._has_room() and (segment := next(segments, None)) is not None:
                yield pb.TranslateStreamRequest(segment=segment)
        except (Exception, KeyboardInterrupt, SystemExit) as error:
            # It is the caller's. gRPC would only log it, or with its thread dead wait for ever.
            self.fault = error

    def answered(self) -> None:
        self._room.release()

    def end(self) -> None:
        """Nobody waits for answers any more."""
        self._is_over = True
        self._room.release()

    def _has_room(self) -> bool:
        """Waits for it; False if there is nobody to answer any more."""
        self._room.acquire()
        return not self._is_over
