"""Texts in, translations out: what `rpc` and the command line call.

Owns the way of a text through one model: sentences set apart from what lies between them, those
with nothing to translate passed through, long ones split, all decoded by the engine, and spans
brought back to the texts as the caller knows them. Knows no protobuf and no grpc.

    "- Hello. 🙂\\n"  ->  reader      "Hello." at 2:8, as ids + EOS
                     ->  windows     engine -> hypotheses
                     ->  writer      "- " + "Bonjour." + " 🙂\\n"

Given translations are scored (`scoring`) by the same engine, and what callers want of translations
in words is put into ids (`wording`).
"""

from service.translator.entrance import StreamEntrance
from service.translator.options import Extras, LongSentences, TextOptions
from service.translator.results import (
    Attention,
    PairScore,
    SentenceResult,
    TokenScores,
    TranslatedHypothesis,
    Translation,
)
from service.translator.scoring import Pair, Ranking
from service.translator.size import MAX_INLINE_BYTES, check_size, least_bytes, pair_bytes
from service.translator.translator import Translator
from service.translator.windows import MAX_AT_ONCE
from service.translator.wording import Wording

__all__ = [
    "MAX_AT_ONCE",
    "MAX_INLINE_BYTES",
    "Attention",
    "Extras",
    "LongSentences",
    "Pair",
    "PairScore",
    "Ranking",
    "SentenceResult",
    "StreamEntrance",
    "TextOptions",
    "TokenScores",
    "TranslatedHypothesis",
    "Translation",
    "Translator",
    "Wording",
    "check_size",
    "least_bytes",
    "pair_bytes",
]
