"""One stream from its first message to its end."""

import asyncio
from typing import Any, Protocol

import grpc
from google.protobuf.message import DecodeError

from service.catalog import Catalog, held
from service.errors import InvalidArgument, TranslationError, Unavailable
from service.pb import translation_pb2 as pb
from service.rpc.convert import Answer, fault_bytes, in_callers_words, segment_bytes
from service.rpc.limits import RequestLimits
from service.rpc.request_log import note_answers, note_fault, note_text
from service.rpc.shares import share_out
from service.rpc.status import status_of
from service.rpc.streaming.settings import Settings
from service.rpc.streaming.window import Window
from service.text.detection import LanguageDetector
from service.translator import MAX_AT_ONCE, MAX_INLINE_BYTES, StreamEntrance, least_bytes

MAX_ID_LENGTH = 256
_CLOSING = "the server is shutting down; send what has no answer again, best to another one"
_LEAVING_SECONDS = 0.002
_EOF: Any = grpc.aio.EOF  # type: ignore[attr-defined]


class Exchange(Protocol):
    """Where the messages of a stream come from and go to: gRPC's context, or what is like it."""

    async def read(self) -> Any:
        """The next message, serialised; `grpc.aio.EOF` after the last one."""

    async def write(self, message: Any, /) -> None: ...

    def time_remaining(self) -> float | None:
        """Seconds until the deadline of the whole stream, if it has one."""


class Stream:
    """Reads, translates and writes side by side, until the client closes its side or we do.

    closing: set when the server reads no more.
    """

    def __init__(
        self,
        exchange: Exchange,
        catalog: Catalog,
        limits: RequestLimits,
        detector: LanguageDetector,
        closing: asyncio.Event,
    ) -> None:
        self._exchange = exchange
        self._catalog = catalog
        self._limits = limits
        self._detector = detector
        self._closing = closing
        self._window = Window(limits)
        self._entrance = StreamEntrance(MAX_AT_ONCE)
        self._writing = asyncio.Lock()
        handler = asyncio.current_task()
        assert handler, "an rpc runs in a task"
        self._handler = handler

    async def run(self) -> None:
        """Returns after the last answer. Cancelling it frees the rows at the next step.

        Raises TranslationError for what ends the stream, after the answers to what came before it.
        """
        closed = asyncio.ensure_future(self._closing.wait())
        try:
            if (first := await self._read(closed)) is not None:
                settings = await _settings(first)
                await settings.check(self._catalog.router)
                await self._answer_all(settings, closed)
        finally:
            closed.cancel()

    async def _answer_all(self, settings: Settings, closed: asyncio.Future[Any]) -> None:
        fault = None
        async with asyncio.TaskGroup() as group:
            try:
                while (message := await self._read(closed)) is not None:
                    segment = _segment(message)
                    self._window.enter(len(segment.content), segment.ByteSize())
                    group.create_task(self._answer(settings, segment))
                    await self._window.wait_until_open()
            except TranslationError as error:
                fault = error
        if fault:
            raise fault

    async def _read(self, closed: asyncio.Future[Any]) -> pb.TranslateStreamRequest | None:
        """The next message; None after the last one. Raises InvalidArgument and Unavailable."""
        reading = asyncio.ensure_future(self._exchange.read())
        try:
            await asyncio.wait((reading, closed), return_when=asyncio.FIRST_COMPLETED)
            if closed.done():
                raise Unavailable(_CLOSING)
            data = reading.result()
        finally:
            reading.cancel()
        if data is not _EOF:
            return _parsed(data)
        # A client that has left looks like one that has said all, until gRPC cancels us for it.
        await asyncio.sleep(_LEAVING_SECONDS)
        return None

    async def _answer(self, settings: Settings, segment: pb.Segment) -> None:
        data = await self._answered(settings, segment)
        self._window.answer(len(data))
        async with self._writing:
            await self._write(data)
        self._window.leave(len(segment.content), segment.ByteSize() + len(data))

    async def _write(self, data: bytes) -> None:
        """Returns once gRPC's flow control has let the answer through."""
        try:
            await self._exchange.write(data)
        except grpc.aio.BaseError:  # the client has left, and gRPC will say so
            self._handler.cancel()

    async def _answered(self, settings: Settings, segment: pb.Segment) -> bytes:
        """The serialised answer, whatever it is."""
        note_text(segment.content)
        try:
            return await self._translated(settings, segment)
        except Exception as error:
            note_fault()
            status = status_of(error)
            # To the translator it is a request of one text.
            status.message = status.message.replace("contents[0]", "content")
            return fault_bytes(segment.id, status)

    async def _translated(self, settings: Settings, segment: pb.Segment) -> bytes:
        limits, contents = self._limits, [segment.content]
        deadline = limits.deadline(self._exchange.time_remaining())
        limits.check_contents(contents)
        request = settings.request_for(segment)
        [share] = await share_out(request, self._catalog.router, self._detector)
        translator = share.model.translator
        with held([share.model]), in_callers_words():
            [translation] = await translator.translate_async(
                contents,
                await settings.options(segment, translator),
                deadline,
                await settings.text_options(segment),
                limits.max_message_bytes,
                settings.extras,
                self._entrance,
            )
        answer = Answer(translation, translator, share.detections[0])
        note_answers([answer])
        arguments = segment.id, answer, limits.max_message_bytes
        if least_bytes(translation) <= MAX_INLINE_BYTES:
            return segment_bytes(*arguments)
        return await asyncio.to_thread(segment_bytes, *arguments)


def _parsed(data: bytes) -> pb.TranslateStreamRequest:
    try:
        return pb.TranslateStreamRequest.FromString(data)
    except DecodeError as error:
        raise InvalidArgument(
            "a message can't be parsed: it is another one, or its text is not UTF-8"
        ) from error


async def _settings(message: pb.TranslateStreamRequest) -> Settings:
    if not message.HasField("settings"):
        raise InvalidArgument("the first message has no settings; send them before any segment")
    return await Settings.read(message.settings)


def _segment(message: pb.TranslateStreamRequest) -> pb.Segment:
    if message.HasField("settings"):
        raise InvalidArgument("settings came twice; open another stream for others")
    if not message.HasField("segment"):
        raise InvalidArgument("a message has neither settings nor a segment; send a segment")
    if len(message.segment.id) > MAX_ID_LENGTH:
        raise InvalidArgument(
            f"an id has {len(message.segment.id)} characters, the limit is {MAX_ID_LENGTH}"
        )
    return message.segment
