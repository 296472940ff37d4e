"""From texts to what the engine decodes: sentences as source ids, each with its place."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from service.bundle import Manifest
from service.errors import InvalidArgument
from service.text import Tokenizer, is_translatable, trim
from service.text.case import Truecaser, is_all_caps
from service.text.checking import Check, go_on
from service.text.protect import may_have_address, protect
from service.text.rewriting import Span
from service.text.segment import MAX_WINDOW, Piece, is_plain_sentence, split_lines, split_sentences
from service.text.split import split_tokens
from service.text.unknown import hide_unknown, is_foreign
from service.translator.document import Document, Unit
from service.translator.options import LongSentences, TextOptions

# What reading a unit costs beside its length, in code points.
_UNIT_LENGTH = 64


class Reader:
    """Takes texts apart for one model. Thread-safe; the work is linear in the texts."""

    def __init__(self, manifest: Manifest, tokenizer: Tokenizer) -> None:
        self._language = manifest.source_language
        self._eos = manifest.special_ids.eos
        self._limit = manifest.limits.max_source_tokens
        self._preferred = manifest.limits.split_above
        # Of a part, without the end that each of them gets, and its prefix.
        self._part_limit = max(1, self._preferred - 1 - len(manifest.source_prefix))
        self._name = manifest.name
        self._tokenizer = tokenizer
        self._truecase = Truecaser(tokenizer.encode, tokenizer.score)

    def units(
        self, contents: Sequence[str], options: TextOptions, check: Check = go_on
    ) -> Iterator[Unit]:
        """Every sentence of every text, in order; `check` is called every millisecond or so.

        Raises InvalidArgument, naming the text by its index, and what `check` raises.
        """
        split = split_sentences if options.split_sentences else split_lines
        limit = self._preferred if options.long_sentences is LongSentences.SPLIT else self._limit
        protects = bool(options.protection or options.protected_spans)
        for index, text in enumerate(contents):
            if not protects and (plain := self._plain(index, text)):
                check()
                yield plain
                continue
            document = _document(index, text, options, check)
            for piece in split(document.text, self._language):
                check()
                unit = self._unit(document, piece)
                if len(unit.ids) <= limit and not piece.is_part:
                    yield unit
                elif options.long_sentences is LongSentences.SPLIT:
                    yield from self._parts(unit, self._preferred)
                else:
                    raise self._too_long(unit)

    def _plain(self, index: int, text: str) -> Unit | None:
        """The unit of a text that is one sentence with nothing to look for; None if in doubt.

        Tells what the long way would find, in a third of the time.
        """
        if len(text) > MAX_WINDOW or text.isupper() or not is_plain_sentence(text):
            return None
        ids = self._tokenizer.encode(text)
        if len(ids) >= self._preferred or not self._tokenizer.unknown_ids.isdisjoint(ids):
            return None
        return Unit(Document(index, text, None), 0, len(text), text, None, [*ids, self._eos])

    def _unit(self, document: Document, piece: Piece) -> Unit:
        start, end = piece.start, piece.end
        text, readable = document.text[start:end], None
        if not _is_translatable(document, (start, end), text):
            return Unit(document, start, end, text, None, [], is_part=piece.is_part)
        capitals = _as_capitals(document, (start, end), text)
        if capitals:
            text = self._truecase(capitals)
        ids = self._tokenizer.encode(text)
        if unknown := self._tokenizer.unknown_characters(text, ids):
            readable = hide_unknown(document.hiding, (start, end), text, unknown)
            ids = [] if is_foreign(text, unknown) else ids
            if ids and readable:
                ids = self._tokenizer.encode(readable.text)
        if ids:
            ids.append(self._eos)
        return Unit(document, start, end, text, readable, ids, capitals is not None, piece.is_part)

    def _parts(self, unit: Unit, limit: int) -> Iterator[Unit]:
        """The unit if it has no more than `limit` tokens, or parts that the model takes."""
        if len(unit.ids) <= limit:
            yield unit
            return
        if len(unit.text) == 1:
            raise self._too_long(unit)
        tokens = self._tokenizer.encode_tokens(unit.read_text)
        starts = [unit.place(token.start) for token in tokens]
        cuts = split_tokens(unit.text, starts, self._part_limit, self._language)
        places = [unit.start, *(_outside(unit, cut) for cut in cuts), unit.end]
        for begin, end in pairwise(places):
            start, stop = trim(unit.document.text, begin, end)
            if start < stop:
                part = self._unit(unit.document, Piece(start, stop, True))
                yield from self._parts(part, self._limit)

    def _too_long(self, unit: Unit) -> InvalidArgument:
        size = f"{len(unit.ids)} tokens, the limit of {self._name} is {self._limit}"
        if unit.is_part:
            size = f"more than {MAX_WINDOW} characters, the most that are translated at once"
        return InvalidArgument(
            f"contents[{unit.document.index}] has a sentence of {size}; shorten it or let it be "
            "split"
        )


def take(units: Iterator[Unit], length: int) -> list[Unit]:
    """The next units that take about as long as reading `length` code points; none at the end."""
    taken = list[Unit]()
    while length > 0 and (unit := next(units, None)):
        taken.append(unit)
        length -= len(unit.text) + _UNIT_LENGTH
    return taken


def _document(index: int, text: str, options: TextOptions, check: Check) -> Document:
    if not text.isascii():
        _check_unicode(index, text)
    spans = options.protected_spans.get(index, ())
    if not (spans or options.protection or may_have_address(text, check)):
        return Document(index, text, None)
    try:
        masked = protect(text, options.protection, spans, check)
    except InvalidArgument as error:
        raise InvalidArgument(f"contents[{index}]: {error}") from error
    return Document(index, text, None if masked.is_plain else masked)


def _check_unicode(index: int, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:  # which no tokenizer takes
        raise InvalidArgument(
            f"contents[{index}] has a lone surrogate at {error.start}; send valid Unicode"
        ) from error


def _is_translatable(document: Document, span: Span, text: str) -> bool:
    if document.masked is None:
        return is_translatable(text)
    return document.masked.is_translatable(span)


def _as_capitals(document: Document, span: Span, text: str) -> str | None:
    """The text if it is written in capitals, all but what is protected; else None."""
    for part in document.masked.parts_of(span) if document.masked else ():
        start, end = part.masked[0] - span[0], part.masked[1] - span[0]
        text = text[:start] + text[start:end].upper() + text[end:]
    return text if text.isupper() and is_all_caps(text) else None


def _outside(unit: Unit, cut: int) -> int:
    """A place to cut the document at: not in a stand-in, if there is another one in the unit."""
    place, masked = unit.start + cut, unit.document.masked
    part = masked.part_across(place) if masked else None
    inside = [edge for edge in part.masked if unit.start < edge < unit.end] if part else []
    return min(inside, key=lambda edge: abs(edge - place), default=place)
