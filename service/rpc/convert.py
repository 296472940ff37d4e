"""Between messages and domain objects, field by field; no decisions but absent = default."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from service.catalog import ServedModel
from service.decoding import DecodingOptions, FinishReason, Stopping
from service.errors import InvalidArgument
from service.pb import translation_pb2 as pb
from service.text import Token
from service.text.detection import Detection
from service.text.protect import Kind, Protection
from service.translator import (
    Attention,
    LongSentences,
    SentenceResult,
    TextOptions,
    TranslatedHypothesis,
    Translation,
    Translator,
    check_size,
)

_FINISH_REASONS = {
    FinishReason.END_OF_SENTENCE: pb.FINISH_REASON_END_OF_SENTENCE,
    FinishReason.LENGTH_LIMIT: pb.FINISH_REASON_LENGTH_LIMIT,
}
_STOPPING = {Stopping.BEST: pb.STOPPING_BEST, Stopping.FINISHED: pb.STOPPING_FINISHED}
_STOPPING_BY_VALUE = {value: stopping for stopping, value in _STOPPING.items()}
_KINDS = {
    pb.PROTECTED_KIND_PLACEHOLDER: Kind.PLACEHOLDER,
    pb.PROTECTED_KIND_ADDRESS: Kind.ADDRESS,
    pb.PROTECTED_KIND_NUMBER: Kind.NUMBER,
    pb.PROTECTED_KIND_TAG: Kind.TAG,
}
_IS_HTML = {"": False, "text/plain": False, "text/html": True}
_LONG_SENTENCES = {
    pb.LONG_SENTENCES_UNSPECIFIED: LongSentences.SPLIT,
    pb.LONG_SENTENCES_SPLIT: LongSentences.SPLIT,
    pb.LONG_SENTENCES_REFUSE: LongSentences.REFUSE,
}


def options_from_message(
    message: pb.DecodingOptions, defaults: DecodingOptions, attention: bool
) -> DecodingOptions:
    """The defaults with what the message sets. Raises InvalidArgument."""
    given: dict[str, Any] = {field.name: value for field, value in message.ListFields()}
    if message.stopping:
        if message.stopping not in _STOPPING_BY_VALUE:
            raise InvalidArgument(f"stopping is {message.stopping}, which this server doesn't know")
        given["stopping"] = _STOPPING_BY_VALUE[message.stopping]
    else:
        given.pop("stopping", None)
    if not given and not attention:
        return defaults
    return replace(defaults, **given, attention=attention)


def text_options_from_message(request: pb.TranslateRequest) -> TextOptions:
    """What the request says about its texts. Raises InvalidArgument."""
    message = request.text_options
    if message.long_sentences not in _LONG_SENTENCES:
        raise InvalidArgument(
            f"long_sentences is {message.long_sentences}, which this server doesn't know"
        )
    if request.mime_type not in _IS_HTML:
        raise InvalidArgument(
            f"mime_type is {request.mime_type!r}; it must be text/plain or text/html"
        )
    return TextOptions(
        split_sentences=not message.HasField("split_sentences") or message.split_sentences,
        long_sentences=_LONG_SENTENCES[message.long_sentences],
        no_break_spaces=message.no_break_spaces,
        protection=_protection(message, _IS_HTML[request.mime_type]),
        protected_spans=_protected_spans(message.protected_spans, len(request.contents)),
    )


def _protection(message: pb.TextOptions, html: bool) -> Protection:
    if unknown := [kind for kind in message.protect if kind not in _KINDS]:
        raise InvalidArgument(f"protect has {unknown[0]}, which this server doesn't know")
    kinds = frozenset(_KINDS[kind] for kind in message.protect)
    glossary = {term.source: term.target for term in message.glossary}
    if len(glossary) < len(message.glossary):
        raise InvalidArgument("glossary has a source term twice; send each once")
    return Protection(kinds, html, glossary)


def _protected_spans(
    messages: Sequence[pb.ProtectedSpan], num_contents: int
) -> dict[int, list[tuple[int, int]]]:
    spans: dict[int, list[tuple[int, int]]] = {}
    for message in messages:
        if not 0 <= message.index < num_contents:
            raise InvalidArgument(
                f"protected_spans name contents[{message.index}], but there are {num_contents}"
            )
        spans.setdefault(message.index, []).append((message.span.begin, message.span.end))
    return spans


def options_to_message(options: DecodingOptions) -> pb.DecodingOptions:
    """Every field set: what ListModels shows."""
    return pb.DecodingOptions(
        beam_size=options.beam_size,
        num_hypotheses=options.num_hypotheses,
        length_penalty=options.length_penalty,
        max_length=options.max_length,
        max_length_ratio=options.max_length_ratio,
        stopping=_STOPPING[options.stopping],
        patience=options.patience,
        shortlist=options.shortlist,
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
    # gRPC would refuse the whole with RESOURCE_EXHAUSTED, which clients retry, in vain.
    parts, size = list[bytes](), 0
    for answer in answers:
        # Messages end to end are one message, with the repeated fields of all. A part at a time,
        # serialising doesn't keep other threads waiting.
        part = pb.TranslateResponse(translations=[_translation(answer)]).SerializeToString()
        size += len(part)
        check_size(size, max_bytes)
        parts.append(part)
    return b"".join(parts)


def _translation(answer: Answer) -> pb.Translation:
    translation, detection = answer.translation, answer.detection
    manifest = answer.translator.manifest
    return pb.Translation(
        translated_text=translation.text,
        model=manifest.name,
        model_version=manifest.version,
        source_language_code=manifest.source_language,
        target_language_code=manifest.target_language,
        sentences=map(_sentence, translation.sentences),
        passed_through=translation.passed_through,
        detected_language_code=detection.language if detection else "",
        detection_confidence=detection.confidence if detection else 0.0,
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


def _sentence(sentence: SentenceResult) -> pb.Sentence:
    return pb.Sentence(
        source=pb.Span(begin=sentence.source[0], end=sentence.source[1]),
        target=pb.Span(begin=sentence.target[0], end=sentence.target[1]),
        source_token_count=sentence.source_token_count,
        hypotheses=map(_hypothesis, sentence.hypotheses),
        is_part=sentence.is_part,
        passed_through=sentence.passed_through,
    )


def _hypothesis(hypothesis: TranslatedHypothesis) -> pb.Hypothesis:
    return pb.Hypothesis(
        text=hypothesis.text,
        log_prob=hypothesis.log_prob,
        score=hypothesis.score,
        finish_reason=_FINISH_REASONS[hypothesis.finish_reason],
        target_token_count=hypothesis.token_count,
        attention=_attention(hypothesis.attention) if hypothesis.attention else None,
    )


def _attention(attention: Attention) -> pb.Attention:
    num_targets, num_sources = attention.weights.shape
    return pb.Attention(
        source_tokens=map(_token, attention.source_tokens),
        target_tokens=map(_token, attention.target_tokens),
        num_heads=1,
        num_targets=num_targets,
        num_sources=num_sources,
        # A list of floats is read ten times faster than an array of numpy's.
        weights=attention.weights.ravel().tolist(),
    )


def _token(token: Token) -> pb.Token:
    return pb.Token(text=token.piece, begin=token.start, end=token.end)
