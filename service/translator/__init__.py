"""Texts in, translations out: what `rpc` and the command line call.

Owns the way of a text through one model: sentences set apart from what lies between them, those
with nothing to translate passed through, long ones split, all decoded by the engine, and spans
brought back to the texts as the caller knows them. Knows no protobuf and no grpc.

    "- Hello. 🙂\\n"  ->  reader      "Hello." at 2:8, as ids + EOS
                     ->  windows     engine -> hypotheses
                     ->  writer      "- " + "Bonjour." + " 🙂\\n"
"""

from service.translator.options import LongSentences, TextOptions
from service.translator.results import (
    Attention,
    SentenceResult,
    TranslatedHypothesis,
    Translation,
)
from service.translator.size import MAX_INLINE_BYTES, check_size, least_bytes
from service.translator.translator import Translator

__all__ = [
    "MAX_INLINE_BYTES",
    "Attention",
    "LongSentences",
    "SentenceResult",
    "TextOptions",
    "TranslatedHypothesis",
    "Translation",
    "Translator",
    "check_size",
    "least_bytes",
]
