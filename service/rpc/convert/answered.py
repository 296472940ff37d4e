"""What requests get, as messages."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from google.protobuf.message import Message
from google.rpc.status_pb2 import Status

from service.bundle import Manifest
from service.catalog import ServedModel
from service.decoding import DecodingOptions
from service.pb import translation_pb2 as pb
from service.rpc.convert.enums import FINISH_REASONS, KEPT_KINDS, LENGTH_FORMS, STOPPING
from service.text import Token
from service.text.alignment import Alignment
from service.text.detection import Detection
from service.text.protect import RestoredPart
from service.text.rewriting import Span
from service.translator import (
    Attention,
    PairScore,
    SentenceResult,
    TokenScores,
    TranslatedHypothesis,
    Translation,
    Translator,
    check_size,
)

# The fields of a message within another one, which is made of them in place: a message would be
# copied into it, which takes three times as long.
_Fields: TypeAlias = dict[str, Any]


def options_to_message(options: DecodingOptions) -> pb.DecodingOptions:
    """Every field set: what ListModels shows of a model's defaults."""
    return pb.DecodingOptions(
        beam_size=options.beam_size,
        num_hypotheses=options.num_hypotheses,
        length_penalty=options.length_penalty,
        max_length=options.max_length,
        max_length_ratio=options.max_length_ratio,
        stopping=STOPPING[options.stopping],
        patience=options.patience,
        shortlist=options.shortlist,
        length_form=LENGTH_FORMS[options.length_form],
        coverage_penalty=options.coverage_penalty,
        min_length=options.min_length,
        min_length_ratio=options.min_length_ratio,
        repetition_penalty=options.repetition_penalty,
        no_repeat_ngram_size=options.no_repeat_ngram_size,
        # A model has no words of its own that begin every translation, or may not come in any.
        prefix="",
        prefix_bias_beta=options.prefix_bias_beta,
        return_alternatives=options.return_alternatives,
        min_alternative_prob=options.min_alternative_prob,
        sampling_temperature=options.sampling_temperature,
        sampling_top_k=options.sampling_top_k,
        sampling_top_p=options.sampling_top_p,
        sampling_seed=options.sampling_seed,
        forbid_unknown=False,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A translation, who made it, and what is known of its source; None if that was given."""

    translation: Translation
    translator: Translator
    detection: Detection | None


def response_bytes(answers: Sequence[Answer], max_bytes: int) -> bytes:
    """A serialised TranslateResponse of all answers, in order.

    Raises InvalidArgument as soon as they have more than `max_bytes`.
    """
    return _joined_bytes(
        (pb.TranslateResponse(translations=[_translation(answer)]) for answer in answers), max_bytes
    )


def segment_bytes(id: str, answer: Answer, max_bytes: int) -> bytes:
    """A serialised TranslateStreamResponse. Raises InvalidArgument above `max_bytes`."""
    message = pb.TranslateStreamResponse(id=id, translation=_translation(answer))
    data = message.SerializeToString()
    check_size(len(data), max_bytes)
    return data


def fault_bytes(id: str, status: Status) -> bytes:
    """A serialised TranslateStreamResponse for a segment that failed."""
    return pb.TranslateStreamResponse(id=id, error=status).SerializeToString()


def scores_bytes(scores: Sequence[PairScore], manifest: Manifest, max_bytes: int) -> bytes:
    """A serialised ScoreResponse of all scores, in order, by the model of the manifest.

    Raises InvalidArgument as soon as they have more than `max_bytes`.
    """
    model = pb.ScoreResponse(model=manifest.name, model_version=manifest.version)
    parts = (pb.ScoreResponse(scores=[_pair_score(score)]) for score in scores)
    return _joined_bytes(itertools.chain([model], parts), max_bytes)


def _joined_bytes(messages: Iterable[Message], max_bytes: int) -> bytes:
    # gRPC would refuse the whole with RESOURCE_EXHAUSTED, which clients retry, in vain.
    parts, size = list[bytes](), 0
    for message in messages:
        # Messages end to end are one message, with the repeated fields of all. A part at a time,
        # serialising doesn't keep other threads waiting.
        part = message.SerializeToString()
        size += len(part)
        check_size(size, max_bytes)
        parts.append(part)
    return b"".join(parts)


def _translation(answer: Answer) -> _Fields:
    translation, detection = answer.translation, answer.detection
    manifest = answer.translator.manifest
    return dict(
        translated_text=translation.text,
        model=manifest.name,
        model_version=manifest.version,
        source_language_code=manifest.source_language,
        target_language_code=manifest.target_language,
        sentences=map(_sentence, translation.sentences),
        passed_through=translation.passed_through,
        detected_language_code=detection.language if detection else "",
        detection_confidence=detection.confidence if detection else 0.0,
        kept_spans=map(_kept, translation.kept),
    )


def model_to_message(model: ServedModel) -> pb.Model:
    """What ListModels shows of a version."""
    manifest = model.manifest
    return pb.Model(
        name=manifest.name,
        version=manifest.version,
        source_language_code=manifest.source_language,
        target_language_code=manifest.target_language,
        architecture=manifest.architecture,
        precision=model.precision,
        max_source_tokens=manifest.limits.max_source_tokens,
        preferred_source_tokens=manifest.limits.split_above,
        max_target_tokens=manifest.limits.max_target_tokens,
        default_options=options_to_message(model.translator.default_options),
    )


def _kept(part: RestoredPart) -> _Fields:
    return dict(source=_span(part.source), target=_span(part.target), kind=KEPT_KINDS[part.kind])


def _sentence(sentence: SentenceResult) -> _Fields:
    return dict(
        source=_span(sentence.source),
        target=_span(sentence.target),
        source_token_count=sentence.source_token_count,
        hypotheses=map(_hypothesis, sentence.hypotheses),
        is_part=sentence.is_part,
        passed_through=sentence.passed_through,
    )


def _hypothesis(hypothesis: TranslatedHypothesis) -> _Fields:
    return dict(
        text=hypothesis.text,
        log_prob=hypothesis.log_prob,
        score=hypothesis.score,
        finish_reason=FINISH_REASONS[hypothesis.finish_reason],
        target_token_count=hypothesis.token_count,
        attention=_attention(hypothesis.attention),
        token_scores=_token_scores(hypothesis.token_scores),
        alignment=_alignment(hypothesis.alignment),
    )


def _pair_score(score: PairScore) -> _Fields:
    return dict(
        log_prob=score.log_prob,
        score=score.score,
        token_scores=_token_scores(score.token_scores),
        source_token_count=score.source_token_count,
        target_token_count=len(score.token_scores.log_probs),
        attention=_attention(score.attention),
    )


def _token_scores(scores: TokenScores | None) -> _Fields | None:
    if scores is None:
        return None
    return dict(tokens=map(_token, scores.tokens), log_probs=scores.log_probs.tolist())


def _alignment(alignment: Alignment | None) -> _Fields | None:
    if alignment is None:
        return None
    return dict(
        source_words=map(_span, alignment.source_words),
        target_words=map(_span, alignment.target_words),
        pairs=[{"source": source, "target": target} for source, target in alignment.pairs],
        pharaoh=alignment.pharaoh,
    )


def _attention(attention: Attention | None) -> _Fields | None:
    if attention is None:
        return None
    weights = attention.weights[None] if attention.heads is None else attention.heads
    num_heads, num_targets, num_sources = weights.shape
    return dict(
        source_tokens=map(_token, attention.source_tokens),
        target_tokens=map(_token, attention.target_tokens),
        num_heads=num_heads,
        num_targets=num_targets,
        num_sources=num_sources,
        # A list of floats is read ten times faster than an array of numpy's.
        weights=weights.ravel().tolist(),
    )


def _token(token: Token) -> _Fields:
    return {"text": token.piece, "begin": token.start, "end": token.end}


def _span(span: Span) -> _Fields:
    return {"begin": span[0], "end": span[1]}
