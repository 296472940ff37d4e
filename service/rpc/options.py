"""How to search, as a request says it and as a model does it."""

import asyncio

from service.decoding import DecodingOptions
from service.pb import translation_pb2 as pb
from service.rpc.convert import options_from_message, text_options_from_message
from service.translator import TextOptions, Translator

# Code points of options that are put into ids on the event loop, in a millisecond.
_MAX_INLINE_LENGTH = 512
# Terms and spans that are, likewise.
MAX_INLINE_ITEMS = 100


async def options_for(
    message: pb.DecodingOptions, request: pb.TranslateRequest, translator: Translator
) -> DecodingOptions:
    """The options of a message, and what a request wants back, for a model.

    Raises InvalidArgument.
    """
    arguments = (
        message,
        translator.default_options,
        translator.wording,
        request.include_attention,
        request.include_attention_heads,
    )
    if len(message.prefix) + sum(map(len, message.suppress_sequences)) <= _MAX_INLINE_LENGTH:
        return options_from_message(*arguments)
    return await asyncio.to_thread(options_from_message, *arguments)


async def text_options_for(request: pb.TranslateRequest) -> TextOptions:
    """What a request says about its texts. Raises InvalidArgument."""
    message = request.text_options
    if len(message.glossary) + len(message.protected_spans) <= MAX_INLINE_ITEMS:
        return text_options_from_message(request)
    return await asyncio.to_thread(text_options_from_message, request)
