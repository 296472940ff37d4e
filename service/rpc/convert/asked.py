"""What requests ask, as the objects that are asked with."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from service.decoding import DecodingOptions
from service.errors import InvalidArgument
from service.pb import translation_pb2 as pb
from service.rpc.convert.enums import KINDS, LENGTH_FORMS, LONG_SENTENCES, STOPPING
from service.text.protect import Protection
from service.translator import Extras, Pair, Ranking, TextOptions, Wording

_STOPPING: Final = {value: stopping for stopping, value in STOPPING.items()}
_LENGTH_FORMS: Final = {value: form for form, value in LENGTH_FORMS.items()}
_IS_HTML: Final = {"": False, "text/plain": False, "text/html": True}
_NO_TEXT_OPTIONS: Final = TextOptions()
_Choice = TypeVar("_Choice")


def options_from_message(
    message: pb.DecodingOptions,
    defaults: DecodingOptions,
    wording: Wording,
    attention: bool,
    attention_heads: bool,
) -> DecodingOptions:
    """The defaults with what the message sets. Raises InvalidArgument."""
    given: dict[str, Any] = {field.name: value for field, value in message.ListFields()}
    _choose(given, "stopping", _STOPPING)
    _choose(given, "length_form", _LENGTH_FORMS)
    if "prefix" in given:
        given["prefix"] = wording.prefix(message.prefix)
    if "suppress_sequences" in given:
        given["suppress_sequences"] = wording.sequences(message.suppress_sequences)
    if given.pop("forbid_unknown", False):
        given["suppress_tokens"] = wording.unknown_ids
    if not (given or attention or attention_heads):
        return defaults
    return replace(defaults, **given, attention=attention, attention_heads=attention_heads)


def _choose(given: dict[str, Any], name: str, choices: Mapping[Any, _Choice]) -> None:
    """Puts a choice in the place of its value; what is unspecified was not given."""
    if not given.get(name):
        given.pop(name, None)
    elif given[name] not in choices:
        raise InvalidArgument(f"{name} is {given[name]}, which this server doesn't know")
    else:
        given[name] = choices[given[name]]


def extras_from_message(request: pb.TranslateRequest) -> Extras:
    """What the request wants beside texts and attention."""
    return Extras(request.include_alignment, request.include_token_scores)


def pairs_from_message(request: pb.ScoreRequest) -> list[Pair]:
    """What the request has scored."""
    return [Pair(pair.source, pair.target) for pair in request.pairs]


def ranking_from_message(request: pb.ScoreRequest, defaults: DecodingOptions) -> Ranking:
    """How the request has its pairs scored. Raises InvalidArgument for an unknown choice."""
    asked = ("length_penalty", "length_form", "coverage_penalty")
    given = {name: getattr(request, name) for name in asked if request.HasField(name)}
    _choose(given, "length_form", _LENGTH_FORMS)
    return replace(
        Ranking.of(defaults),
        **given,
        attention=request.include_attention,
        attention_heads=request.include_attention_heads,
    )


def text_options_from_message(request: pb.TranslateRequest) -> TextOptions:
    """What the request says about its texts. Raises InvalidArgument."""
    if not (request.mime_type or request.HasField("text_options")):
        return _NO_TEXT_OPTIONS  # as nearly every request
    message = request.text_options
    if message.long_sentences not in LONG_SENTENCES:
        raise InvalidArgument(
            f"long_sentences is {message.long_sentences}, which this server doesn't know"
        )
    if request.mime_type not in _IS_HTML:
        raise InvalidArgument(
            f"mime_type is {request.mime_type!r}; it must be text/plain or text/html"
        )
    return TextOptions(
        split_sentences=not message.HasField("split_sentences") or message.split_sentences,
        long_sentences=LONG_SENTENCES[message.long_sentences],
        no_break_spaces=message.no_break_spaces,
        protection=_protection(message, _IS_HTML[request.mime_type]),
        protected_spans=_protected_spans(message.protected_spans, len(request.contents)),
    )


def _protection(message: pb.TextOptions, html: bool) -> Protection:
    if unknown := [kind for kind in message.protect if kind not in KINDS]:
        raise InvalidArgument(f"protect has {unknown[0]}, which this server doesn't know")
    kinds = frozenset(KINDS[kind] for kind in message.protect)
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
