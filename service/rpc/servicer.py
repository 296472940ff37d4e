"""The rpcs of nmt.v1.TranslationService: message -> model and options -> translator -> message.

Runs on the event loop and keeps it free: nothing here blocks, decoding happens elsewhere, and large
answers are written and serialised in a thread. A request holds the models that it was routed to, so
that they outlive their replacement for as long as it needs them.
"""

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeAlias, TypeVar

import grpc

from service.catalog import Catalog, held
from service.pb import translation_pb2 as pb
from service.rpc.convert import (
    Answer,
    extras_from_message,
    in_callers_words,
    model_to_message,
    response_bytes,
)
from service.rpc.limits import RequestLimits
from service.rpc.options import options_for, text_options_for
from service.rpc.request_log import note_answers, note_contents
from service.rpc.scoring import score
from service.rpc.shares import Share, share_out
from service.rpc.status import abort
from service.rpc.streaming import Exchange, Stream
from service.text.detection import LanguageDetector
from service.translator import MAX_INLINE_BYTES, TextOptions, least_bytes

TRANSLATION_SERVICE: str = pb.DESCRIPTOR.services_by_name["TranslationService"].full_name
# A few sentences, which are put into a message in a tenth of a millisecond.
_MAX_BYTES_WITHOUT_TURN = 1 << 11
_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
_Response = TypeVar("_Response")


class TranslationServicer:
    """Answers with the models of `catalog`, and UNAVAILABLE until they are loaded.

    closing: set when the server is to stop: then streams end, which else might last for ever.
    """

    def __init__(
        self, catalog: Catalog, limits: RequestLimits, closing: asyncio.Event | None = None
    ) -> None:
        self._catalog = catalog
        self._limits = limits
        self._closing = closing or asyncio.Event()
        self._detector = LanguageDetector()

    async def Translate(self, request: pb.TranslateRequest, context: _Context) -> bytes:
        return await answered(self._translate(request, context.time_remaining()), context)

    async def TranslateStream(self, requests: object, context: _Context) -> None:
        await answered(self.translate_stream(context), context)

    async def Score(self, request: pb.ScoreRequest, context: _Context) -> bytes:
        return await answered(self._score(request, context.time_remaining()), context)

    async def ListModels(self, request: pb.ListModelsRequest, context: _Context) -> bytes:
        response = await answered(self.list_models(), context)
        return response.SerializeToString()

    async def translate(
        self, request: pb.TranslateRequest, remaining: float | None = None
    ) -> pb.TranslateResponse:
        """`Translate` without gRPC, within `remaining` seconds; raises TranslationError."""
        return pb.TranslateResponse.FromString(await self._translate(request, remaining))

    async def translate_stream(self, exchange: Exchange) -> None:
        """`TranslateStream` without gRPC; raises TranslationError."""
        arguments = self._catalog, self._limits, self._detector, self._closing
        await Stream(exchange, *arguments).run()

    async def score(
        self, request: pb.ScoreRequest, remaining: float | None = None
    ) -> pb.ScoreResponse:
        """`Score` without gRPC, within `remaining` seconds; raises TranslationError."""
        return pb.ScoreResponse.FromString(await self._score(request, remaining))

    async def list_models(self) -> pb.ListModelsResponse:
        """`ListModels` without gRPC; raises TranslationError."""
        router = self._catalog.router
        return pb.ListModelsResponse(
            models=map(model_to_message, router.models),
            default_model=router.default,
            limits=self._limits.to_message(),
        )

    async def _translate(self, request: pb.TranslateRequest, remaining: float | None) -> bytes:
        """The serialised response."""
        deadline = self._limits.deadline(remaining)
        self._limits.check_contents(request.contents)
        note_contents(request.contents)
        text_options = await text_options_for(request)
        limit = self._limits.max_message_bytes
        shares = await share_out(request, self._catalog.router, self._detector)
        with held([share.model for share in shares]):
            answers: dict[int, Answer] = {}
            for share in shares:
                translated = await _translated(request, share, text_options, deadline, limit)
                answers.update(zip(share.indices, translated, strict=True))
        in_order = [answers[index] for index in range(len(answers))]
        note_answers(in_order)
        size = sum([least_bytes(answer.translation) for answer in in_order])
        if size > MAX_INLINE_BYTES:
            return await asyncio.to_thread(response_bytes, in_order, limit)
        if size > _MAX_BYTES_WITHOUT_TURN:
            await asyncio.sleep(0)  # whoever waits has his turn
        return response_bytes(in_order, limit)

    async def _score(self, request: pb.ScoreRequest, remaining: float | None) -> bytes:
        return await score(request, self._catalog, self._limits, remaining)


def add_translation(server: grpc.aio.Server, servicer: TranslationServicer) -> None:
    """Answers translation requests with `servicer`."""
    # Not by the generated function: it serialises every response on the event loop, and 16 MiB take
    # long enough there to be felt by everybody.
    handlers = {
        "Translate": grpc.unary_unary_rpc_method_handler(
            servicer.Translate, pb.TranslateRequest.FromString
        ),
        # Reads and parses by itself, so that it can answer what it can't parse.
        "TranslateStream": grpc.stream_stream_rpc_method_handler(servicer.TranslateStream),
        "Score": grpc.unary_unary_rpc_method_handler(servicer.Score, pb.ScoreRequest.FromString),
        "ListModels": grpc.unary_unary_rpc_method_handler(
            servicer.ListModels, pb.ListModelsRequest.FromString
        ),
    }
    handler = grpc.method_handlers_generic_handler(TRANSLATION_SERVICE, handlers)
    server.add_generic_rpc_handlers([handler])


async def answered(work: Awaitable[_Response], context: _Context) -> _Response:
    """The response of an rpc; its failure ends the rpc with the status that it has."""
    try:
        return await work
    except Exception as error:
        await abort(context, error)


async def _translated(
    request: pb.TranslateRequest,
    share: Share,
    text_options: TextOptions,
    deadline: float,
    max_answer_bytes: int,
) -> list[Answer]:
    """The translations of a share."""
    translator = share.model.translator
    with in_callers_words():
        translations = await translator.translate_async(
            [request.contents[index] for index in share.indices],
            await options_for(request.options, request, translator),
            deadline,
            text_options.for_texts(share.indices),
            max_answer_bytes,
            extras_from_message(request),
        )
    return [
        Answer(translation, translator, detection)
        for translation, detection in zip(translations, share.detections, strict=True)
    ]
