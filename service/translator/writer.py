"""From hypotheses to translations: texts put back together, spans in the caller's own terms."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from service.bundle import Manifest
from service.decoding import Hypothesis
from service.text import Token, Tokenizer
from service.text.alignment import Alignment, align
from service.text.case import upper_case
from service.text.protect import Decoded, Kind, Masked, RestoredPart, restore
from service.text.rewriting import Span
from service.text.typography import with_no_break_spaces
from service.translator.document import Unit
from service.translator.options import NO_EXTRAS, Extras
from service.translator.results import (
    END_OF_SENTENCE,
    Attention,
    SentenceResult,
    TokenScores,
    TranslatedHypothesis,
    Translation,
)

# Times as much as text alone: spans on both sides, brought through every change.
_ALIGNING_COST = 8
# A tag takes as long as two tokens.
_TAG_COST = 2
# A model that spells characters by bytes can spell controls; lines are the caller's.
_PRINTABLE = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029], " ")


class Writer:
    """Puts the texts of one request together.

    attention, extras: what the caller wants. Target spans are in the text of their hypothesis:
    `translations` moves them.
    """

    def __init__(
        self,
        manifest: Manifest,
        tokenizers: tuple[Tokenizer, Tokenizer],
        *,
        no_break_spaces: bool,
        attention: bool,
        extras: Extras = NO_EXTRAS,
    ) -> None:
        self._eos = manifest.special_ids.eos
        self._source, self._target = tokenizers
        self._language = manifest.target_language if no_break_spaces else ""
        self._attention = attention
        self._extras = extras
        self._is_detailed = attention or extras != NO_EXTRAS

    @property
    def needs_attention(self) -> bool:
        """Whether hypotheses must come with it, whatever their unit is."""
        return self._attention or self._extras.alignment

    def hypotheses(
        self, unit: Unit, results: Sequence[Hypothesis]
    ) -> tuple[TranslatedHypothesis, ...]:
        """What was decoded of a unit, as text; without empty ones, if there are others."""
        source = None if self._is_simple(unit) else self._source_tokens(unit)
        written = tuple([self._hypothesis(unit, source, result) for result in results])
        if len(written) == 1:
            return written
        return tuple(each for each in written if each.text.strip()) or written

    def cost(self, unit: Unit, results: Sequence[Hypothesis]) -> int:
        """How much work `hypotheses` is: about a microsecond each."""
        num_tokens = sum([len(result.ids) for result in results])
        if self._is_simple(unit):
            return num_tokens
        num_placed = (len(unit.ids) + _TAG_COST * unit.num_tags) * len(results)
        return _ALIGNING_COST * (num_tokens + num_placed)

    def _is_simple(self, unit: Unit) -> bool:
        return unit.is_plain and not self._is_detailed

    def _source_tokens(self, unit: Unit) -> list[Token]:
        tokens = self._source.encode_tokens(unit.read_text)
        return [
            *tokens,
            Token(self._eos, END_OF_SENTENCE, len(unit.read_text), len(unit.read_text)),
        ]

    def _hypothesis(
        self, unit: Unit, source: list[Token] | None, result: Hypothesis
    ) -> TranslatedHypothesis:
        if source is None:
            return _named(self._polished(self._target.decode(result.ids)), result)
        return self._detailed(unit, source, result)

    def _polished(self, text: str) -> str:
        """The text without line breaks, and with the spaces that are wanted, as long as it was."""
        if not text.isprintable():
            text = text.translate(_PRINTABLE)
        return with_no_break_spaces(text, self._language)

    def _detailed(
        self, unit: Unit, source: list[Token], result: Hypothesis
    ) -> TranslatedHypothesis:
        text, target = self._target.decode_tokens(result.ids)
        weights = result.attention
        if weights is None:
            weights = np.zeros((len(target), len(source)), np.float32)
        decoded = Decoded(self._polished(text), _spans(target), _spans(source), weights)
        final, kept = _put_back(unit, decoded)
        tokens, extras = _moved(target, final.target), self._extras
        return _named(final.text, result)._replace(
            attention=Attention(
                _moved(source, final.source), tokens, weights, result.attention_heads
            )
            if self._attention
            else None,
            alignment=_alignment(unit, final) if extras.alignment else None,
            token_scores=TokenScores(tokens, result.token_log_probs)
            if extras.token_scores
            else None,
            kept=kept,
        )


def _named(text: str, result: Hypothesis) -> TranslatedHypothesis:
    return TranslatedHypothesis(
        text, result.log_prob, result.score, result.finish_reason, len(result.token_log_probs)
    )


def _alignment(unit: Unit, final: Decoded) -> Alignment:
    """Of words of the caller's text."""
    start, end = unit.source_span
    source = [(first - start, last - start) for first, last in final.source]
    words = align(unit.document.source[start:end], source, final.text, final.target, final.weights)
    return words.moved(start, 0)


def _put_back(unit: Unit, decoded: Decoded) -> tuple[Decoded, tuple[RestoredPart, ...]]:
    """What the model made of a unit, with all that was changed for it as the caller wants it.

    Source spans index the text that the model read, then the caller's. Also what was put back.
    """
    if unit.is_capitals:
        upper = upper_case(decoded.text)
        target = [upper.span(*span) for span in decoded.target]
        decoded = replace(decoded, text=upper.text, target=target)
    source = [unit.document_span(*span) for span in decoded.source]
    decoded = replace(decoded, source=source)
    if unit.document.masked is None and unit.readable is None:
        return decoded, ()
    masked = unit.document.hiding
    # In one go: what is put in is no text of the model's that others might take the place of.
    restored = restore(masked, (unit.start, unit.end), decoded, unit.parts)
    target = [restored.map.to_new(*span) for span in decoded.target]
    # An empty span at an end of the sentence may stand behind a tag that is not its own.
    source = [_within(unit.source_span, *masked.source_span(*span)) for span in source]
    return Decoded(restored.text, target, source, decoded.weights), restored.parts


def _within(bounds: Span, start: int, end: int) -> Span:
    low, high = bounds
    return min(max(start, low), high), max(min(end, high), low)


def translations(
    contents: Sequence[str],
    units: Iterable[Unit],
    hypotheses: Iterable[tuple[TranslatedHypothesis, ...]],
) -> list[Translation]:
    """Each text with its sentences exchanged for their first hypothesis.

    hypotheses: of the units that have ids, in their order.
    """
    remaining = iter(hypotheses)
    units_of: list[list[Unit]] = [[] for _ in contents]
    for unit in units:
        units_of[unit.document.index].append(unit)
    texts = zip(contents, units_of, strict=True)
    return [_translation(text, of_text, remaining) for text, of_text in texts]


def _translation(
    text: str, units: Sequence[Unit], remaining: Iterator[tuple[TranslatedHypothesis, ...]]
) -> Translation:
    if not any([unit.ids for unit in units]):
        return Translation(text)
    masked = units[0].document.masked
    parts, sentences, kept = list[str](), list[SentenceResult](), list[RestoredPart]()
    position = length = 0
    for unit in units:
        start, end = unit.source_span
        hypotheses = next(remaining) if unit.ids else ()
        between = text[position:start]
        target = hypotheses[0].text if hypotheses else text[start:end]
        begin = length + len(between)
        moved = tuple([hypothesis.moved(begin) for hypothesis in hypotheses])
        if masked:
            kept += _copied(masked, position, start if moved else end, length)
        kept += moved[0].kept if moved else ()
        position, length = end, begin + len(target)
        parts += between, target
        sentences.append(
            SentenceResult(
                source=(start, end),
                target=(begin, length),
                source_token_count=len(unit.ids),
                hypotheses=moved,
                is_part=unit.is_part,
            )
        )
    if masked:
        kept += _copied(masked, position, len(text), length)
    return Translation("".join(parts) + text[position:], tuple(sentences), tuple(kept))


def _copied(masked: Masked, start: int, end: int, place: int) -> Iterator[RestoredPart]:
    """What is protected in a span of the source that was copied to a place of the translation.

    Without terms: it is their translation that would be kept.
    """
    for kind, (first, last) in masked.hidden_in(start, end):
        if kind is Kind.TERM:
            continue
        target = first - start + place, last - start + place
        yield RestoredPart(kind, (first, last), target)


def _spans(tokens: Iterable[Token]) -> list[Span]:
    return [(token.start, token.end) for token in tokens]


def _moved(tokens: Iterable[Token], spans: Iterable[Span]) -> tuple[Token, ...]:
    moves = zip(tokens, spans, strict=True)
    return tuple(Token(token.id, token.piece, *span) for token, span in moves)
