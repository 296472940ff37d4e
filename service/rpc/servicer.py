"""The rpcs of nmt.v1: message -> model and options -> translator -> message.

Runs on the event loop and keeps it free: nothing here blocks, and decoding happens elsewhere.
"""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import grpc

from service.config import ServerConfig
from service.decoding.options import MAX_BEAM_SIZE
from service.errors import DeadlineExceeded, InvalidArgument, Unavailable
from service.pb import translation_pb2 as pb
from service.pb.translation_pb2_grpc import (
    TranslationServiceServicer,
    add_TranslationServiceServicer_to_server,
)
from service.rpc.convert import (
    Answer,
    model_to_message,
    options_from_message,
    response_message,
    text_options_from_message,
)
from service.rpc.models import ServedModel
from service.rpc.routing import Router
from service.rpc.shares import Share, share_out
from service.rpc.status import abort
from service.text.detection import LanguageDetector
from service.translator import MAX_INLINE_BYTES, TextOptions, least_bytes

TRANSLATION_SERVICE: str = pb.DESCRIPTOR.services_by_name["TranslationService"].full_name
_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
_Response = TypeVar("_Response")


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """What one request may ask, whatever the model."""

    max_contents: int
    max_characters: int
    max_message_bytes: int
    max_rows: int
    default_deadline_seconds: float

    @classmethod
    def of(cls, config: ServerConfig) -> "RequestLimits":
        return cls(
            config.max_contents,
            config.max_characters,
            config.max_message_bytes,
            config.max_rows,
            config.default_deadline_seconds,
        )


class TranslationServicer(TranslationServiceServicer):
    """Answers UNAVAILABLE until `router` is set, when the models are loaded."""

    def __init__(self, limits: RequestLimits) -> None:
        self.router: Router[ServedModel] | None = None
        self._limits = limits
        self._detector = LanguageDetector()

    async def Translate(
        self, request: pb.TranslateRequest, context: _Context
    ) -> pb.TranslateResponse:
        return await _answer(self.translate(request, context.time_remaining()), context)

    async def ListModels(
        self, request: pb.ListModelsRequest, context: _Context
    ) -> pb.ListModelsResponse:
        return await _answer(self.list_models(), context)

    async def translate(
        self, request: pb.TranslateRequest, remaining: float | None = None
    ) -> pb.TranslateResponse:
        """`Translate` without gRPC, within `remaining` seconds; raises TranslationError."""
        deadline = time.monotonic() + self._seconds(remaining)
        self._check_contents(request.contents)
        text_options = text_options_from_message(request)
        shares = await share_out(request, self._loaded(), self._detector)
        limit = self._limits.max_message_bytes
        answers: dict[int, Answer] = {}
        for share in shares:
            answers |= await _translated(request, share, text_options, deadline, limit)
        in_order = [answer for _, answer in sorted(answers.items())]
        if sum(least_bytes(answer.translation) for answer in in_order) <= MAX_INLINE_BYTES:
            return response_message(in_order, limit)
        return await asyncio.to_thread(response_message, in_order, limit)

    async def list_models(self) -> pb.ListModelsResponse:
        """`ListModels` without gRPC; raises TranslationError."""
        router, limits = self._loaded(), self._limits
        return pb.ListModelsResponse(
            models=[model_to_message(m.translator, m.precision) for m in router.models],
            default_model=router.default,
            limits=pb.Limits(
                max_contents=limits.max_contents,
                max_characters=limits.max_characters,
                max_message_bytes=limits.max_message_bytes,
                max_beam_size=min(MAX_BEAM_SIZE, limits.max_rows),
                default_deadline_seconds=limits.default_deadline_seconds,
            ),
        )

    def _loaded(self) -> Router[ServedModel]:
        if self.router is None:
            raise Unavailable("the server is loading its models; try again soon")
        return self.router

    def _seconds(self, remaining: float | None) -> float:
        if remaining is None:
            return self._limits.default_deadline_seconds
        if remaining <= 0:
            raise DeadlineExceeded("the deadline had passed when the request arrived")
        return remaining

    def _check_contents(self, contents: Sequence[str]) -> None:
        if (count := len(contents)) == 0:
            raise InvalidArgument("contents is empty; send at least one text")
        if count > (limit := self._limits.max_contents):
            raise InvalidArgument(
                f"contents has {count} texts, the limit is {limit}; send several requests"
            )
        if (length := sum(map(len, contents))) > (limit := self._limits.max_characters):
            raise InvalidArgument(
                f"contents has {length} characters, the limit is {limit}; send several requests"
            )


def add_translation(server: grpc.aio.Server, servicer: TranslationServicer) -> None:
    """Answers translation requests with `servicer`."""
    add_TranslationServiceServicer_to_server(servicer, server)  # type: ignore[no-untyped-call]


async def _translated(
    request: pb.TranslateRequest,
    share: Share,
    text_options: TextOptions,
    deadline: float,
    max_answer_bytes: int,
) -> dict[int, Answer]:
    """The translations of a share, by their place in the request."""
    translator = share.model.translator
    options = options_from_message(
        request.options, translator.default_options, request.include_attention
    )
    translations = await translator.translate_async(
        [request.contents[index] for index in share.indices],
        options,
        deadline,
        text_options.for_texts(share.indices),
        max_answer_bytes,
    )
    answers = map(Answer, translations, itertools.repeat(translator), share.detections)
    return dict(zip(share.indices, answers, strict=True))


async def _answer(work: Awaitable[_Response], context: _Context) -> _Response:
    try:
        return await work
    except Exception as error:
        await abort(context, error)
