"""What a translation comes with, as plain values for JSON.

Sentences with their scores, alignment and attention, and what was kept of the text.

A sentence has its span in the text and that of its translation in the translated text, in code
points, and its hypotheses, best first: none if it passed through. Numbers are rounded, the model's
own arithmetic has no more.
"""

from collections.abc import Mapping
from typing import Any

from service.pb import translation_pb2 as pb

_SCORE_DIGITS = 6
_WEIGHT_DIGITS = 4


def sentences(translation: pb.Translation) -> list[Mapping[str, Any]]:
    """The sentences of a text, in order."""
    return [
        {
            "source": [sentence.source.begin, sentence.source.end],
            "target": [sentence.target.begin, sentence.target.end],
            "hypotheses": [*map(_hypothesis, sentence.hypotheses)],
        }
        for sentence in translation.sentences
    ]


def kept(translation: pb.Translation) -> list[Mapping[str, Any]]:
    """What came out as it was, or as a glossary has it: where in both texts, and its kind."""
    return [
        {
            "source": [span.source.begin, span.source.end],
            "target": [span.target.begin, span.target.end],
            "kind": pb.KeptKind.Name(span.kind).removeprefix("KEPT_KIND_").lower(),
        }
        for span in translation.kept_spans
    ]


def _hypothesis(hypothesis: pb.Hypothesis) -> Mapping[str, Any]:
    value: dict[str, Any] = {
        "text": hypothesis.text,
        "score": round(hypothesis.score, _SCORE_DIGITS),
        "log_prob": round(hypothesis.log_prob, _SCORE_DIGITS),
    }
    if hypothesis.HasField("alignment"):
        value["alignment"] = hypothesis.alignment.pharaoh
    if hypothesis.HasField("attention"):
        value["attention"] = _attention(hypothesis.attention)
    return value


def _attention(attention: pb.Attention) -> Mapping[str, Any]:
    """Tokens, and a row of weights for each target token: a weight for each source token."""
    width = attention.num_sources
    weights = [round(weight, _WEIGHT_DIGITS) for weight in attention.weights]
    return {
        "source_tokens": [token.text for token in attention.source_tokens],
        "target_tokens": [token.text for token in attention.target_tokens],
        "weights": [weights[row * width :][:width] for row in range(attention.num_targets)],
    }
