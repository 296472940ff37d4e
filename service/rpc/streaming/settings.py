"""How the segments of a stream are translated: by its first message, and what each says itself."""

import asyncio
from dataclasses import replace
from weakref import WeakKeyDictionary

from service.catalog import Router, ServedModel
from service.decoding import DecodingOptions
from service.errors import TranslationError
from service.pb import translation_pb2 as pb
from service.rpc.convert import extras_from_message, in_callers_words
from service.rpc.options import MAX_INLINE_ITEMS, options_for, text_options_for
from service.rpc.shares import choices
from service.translator import TextOptions, Translator


class Settings:
    """The first message, read once: see `read`."""

    def __init__(self, request: pb.TranslateRequest, text_options: TextOptions) -> None:
        self._request, self._text_options = request, text_options
        self.extras = extras_from_message(request)
        # Of segments that have none of their own: words to suppress are put into ids once.
        self._options: WeakKeyDictionary[Translator, DecodingOptions] = WeakKeyDictionary()

    @classmethod
    async def read(cls, message: pb.TranslateStreamSettings) -> "Settings":
        """Raises InvalidArgument."""
        # Its fields are those of a request, number by number.
        request = pb.TranslateRequest.FromString(message.SerializeToString())
        return cls(request, await text_options_for(request))

    async def check(self, router: Router[ServedModel]) -> None:
        """Raises what every segment would fail with, by what serves now."""
        faults = list[TranslationError]()
        for choice in (known := choices(self._request, router)):
            try:
                translator = router.choose(*choice).translator
                with in_callers_words():
                    options = await self.options(pb.Segment(), translator)
                    translator.engine.check_options(options)
            except TranslationError as error:
                faults.append(error)
        if len(faults) == len(known):
            raise faults[0]

    def request_for(self, segment: pb.Segment) -> pb.TranslateRequest:
        """What the model of a segment is chosen by."""
        return pb.TranslateRequest(
            contents=[segment.content],
            source_language_code=self._request.source_language_code,
            target_language_code=self._request.target_language_code,
            model=self._request.model,
            model_version=self._request.model_version,
        )

    async def options(self, segment: pb.Segment, translator: Translator) -> DecodingOptions:
        """How a model searches for the translation of a segment. Raises InvalidArgument."""
        if segment.HasField("options"):
            message = pb.DecodingOptions()
            message.CopyFrom(self._request.options)
            message.MergeFrom(segment.options)
            return await options_for(message, self._request, translator)
        if translator not in self._options:
            options = await options_for(self._request.options, self._request, translator)
            self._options[translator] = options
        return self._options[translator]

    async def text_options(self, segment: pb.Segment) -> TextOptions:
        """How a segment is taken apart and put together."""
        if not segment.protected_spans:
            return self._text_options
        if len(segment.protected_spans) <= MAX_INLINE_ITEMS:
            return self._with_spans(segment)
        return await asyncio.to_thread(self._with_spans, segment)

    def _with_spans(self, segment: pb.Segment) -> TextOptions:
        spans = [(span.begin, span.end) for span in segment.protected_spans]
        return replace(self._text_options, protected_spans={0: spans})
