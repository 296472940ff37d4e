"""From a caller's text to the text that the model sees, and back.

    source   <p>Dear {name},<br>see <b>our</b> site</p>
    view     ▪Dear {name},▪see ▪our▪ site▪
    masked   ⏎Dear Tom,⏎see our site⏎

Parts are replaced by stand-ins. A tag of a block ends a line, the others leave nothing.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import pairwise
from operator import itemgetter
from typing import TypeVar

from service.text.checking import Check, checked, go_on
from service.text.layout import is_translatable
from service.text.protect.options import Kind, Protection, check_spans
from service.text.protect.regions import Region, find_regions
from service.text.protect.stand_ins import NUMBERS, melts_after, melts_before, stand_ins, used_words
from service.text.protect.view import View
from service.text.rewriting import Rewriter, Span, SpanMap
from service.text.words import is_control


@dataclass(frozen=True, slots=True)
class Part:
    """`source[start:end]`, which comes out as `output`.

    masked: the span of `stand_in`, which the model sees instead.
    is_shown: whether that is the source itself, as it is for a term.
    pieces: the spans of the source that `output` is made of, if there may be tags between them.
    """

    kind: Kind
    start: int
    end: int
    output: str
    stand_in: str
    masked: Span
    is_shown: bool = False
    pieces: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class MaskedTag:
    """`source[start:end]`, a tag.

    masked: what is left of it for the model: nothing, or the end of a line.
    partner: index among the tags of the text.
    """

    start: int
    end: int
    masked: Span
    is_closing: bool
    partner: int | None


_Hidden = TypeVar("_Hidden", Part, MaskedTag)


@dataclass(frozen=True, slots=True, eq=False)
class Masked:
    """What the model sees of `source` is `text`; parts and tags are in order."""

    source: str
    text: str
    html: bool
    parts: tuple[Part, ...]
    tags: tuple[MaskedTag, ...]
    _maps: tuple[SpanMap, SpanMap]  # from the source to the view, from there to `text`

    @classmethod
    def nothing(cls, text: str) -> "Masked":
        """A text of which nothing is hidden."""
        return cls(text, text, False, (), (), (SpanMap(), SpanMap()))

    @property
    def is_plain(self) -> bool:
        """Whether nothing is hidden, so that the text can go by without it."""
        return not (self.parts or self.tags or self.html)

    def source_span(self, start: int, end: int) -> Span:
        """Return the span in `source` of a span of `text`: all of a part that it touches."""
        to_view, to_text = self._maps
        return to_view.to_old(*to_text.to_old(start, end))

    def pieces(self, span: Span) -> tuple[Span, ...]:
        """Return the spans in `source` of a span of `text`, without the tags that are inside."""
        start, end = span
        first = bisect_right(self.tags, start, key=_masked_start)
        last = bisect_left(self.tags, end, key=_masked_start)
        cuts = sorted({tag.masked[0] for tag in self.tags[first:last]})
        return tuple(self.source_span(*piece) for piece in pairwise([start, *cuts, end]))

    def parts_of(self, sentence: Span) -> tuple[Part, ...]:
        """Return the parts whose stand-ins begin in a sentence, a span of `text`."""
        start, end = (bisect_left(self.parts, edge, key=_masked_start) for edge in sentence)
        return self.parts[start:end]

    def num_tags(self, sentence: Span) -> int:
        """How many tags are in a sentence or at its ends."""
        start, end = sentence
        first = bisect_left(self.tags, start, key=_masked_start)
        return bisect_right(self.tags, end, key=_masked_start) - first

    def hidden_in(self, start: int, end: int) -> Iterator[tuple[Kind, Span]]:
        """Yield the parts and tags that begin in `source[start:end]`, in order."""
        parts = ((part.start, part.end, part.kind) for part in _between(self.parts, start, end))
        tags = ((tag.start, tag.end, Kind.TAG) for tag in _between(self.tags, start, end))
        for first, last, kind in merge(parts, tags, key=itemgetter(0)):
            yield kind, (first, last)

    def part_across(self, position: int) -> Part | None:
        """Return the part that would be cut at a position of `text`."""
        before = bisect_left(self.parts, position, key=_masked_start) - 1
        if before >= 0 and self.parts[before].masked[1] > position:
            return self.parts[before]
        return None

    def is_translatable(self, sentence: Span) -> bool:
        """Whether a sentence has anything to translate besides its parts."""
        parts = self.parts_of(sentence)
        if any(part.kind is Kind.TERM for part in parts):
            return True
        rest, position = "", sentence[0]
        for part in parts:
            rest += self.text[position : part.masked[0]] + " "
            position = part.masked[1]
        return is_translatable(rest + self.text[position : sentence[1]])


def protect(
    text: str, protection: Protection, spans: Sequence[Span] = (), check: Check = go_on
) -> Masked:
    """Hide from the model what must not change in `text`.

    spans: what the caller protects besides, in code points. Raises InvalidArgument if one of them
    is empty or not in the text, and what `check` raises.
    """
    check_spans(spans, len(text))
    view = View.of(text, protection, check)
    regions = find_regions(view, protection, spans, check)
    return _Masking(view, regions, check).finish(protection.html)


class _Masking:
    """Writes the masked text of a view."""

    def __init__(self, view: View, regions: Sequence[Region], check: Check) -> None:
        self._view = view
        self._regions = regions
        self._check = check
        self._writer = Rewriter(view.text)
        used = used_words(view.text, check) if regions else frozenset()
        self._names, self._numbers = stand_ins(used), stand_ins(used, NUMBERS)
        self._part_end = -1
        self._parts: list[Part] = []
        self._hidden: dict[int, Span] = {}  # what is left of tags, by their index in the view

    def finish(self, html: bool) -> Masked:
        next_tag = 0
        for region in checked(self._regions, self._check):
            next_tag = self._hide_tags(next_tag, region.start)
            self._writer.keep(region.start)
            self._parts.append(self._hide(region))
            next_tag = bisect_left(self._view.marks, region.end)
        self._hide_tags(next_tag, len(self._view.text))
        text, to_text = self._writer.finish()
        parts, tags, maps = tuple(self._parts), tuple(self._tags()), (self._view.map, to_text)
        return Masked(self._view.source, text, html, parts, tags, maps)

    def _hide(self, region: Region) -> Part:
        word = self._stand_in(region)
        before, after = self._padding(region)
        if before:
            self._writer.insert(before)
        masked = self._writer.replace(region.end, word)
        if after:
            self._writer.insert(after)
        self._part_end = region.end
        source = self._view.map.to_old(region.start, region.end)
        is_shown = region.kind is Kind.TERM
        return Part(region.kind, *source, region.output, word, masked, is_shown)

    def _stand_in(self, region: Region) -> str:
        if region.kind is Kind.TERM:
            # It stays: sentences are better around it, and its translation is replaced.
            return self._view.text[region.start : region.end]
        return next(self._numbers if region.kind is Kind.NUMBER else self._names)

    def _hide_tags(self, index: int, end: int) -> int:
        """Hide tags from `index` on that begin before `end`; returns the index of the next one."""
        marks, tags = self._view.marks, self._view.tags
        while index < len(marks) and marks[index] < end:
            self._check()
            self._writer.keep(marks[index])
            new = "\n" if tags[index].is_block else ""
            self._hidden[index] = self._writer.replace(marks[index] + 1, new)
            index += 1
        return index

    def _padding(self, region: Region) -> tuple[str, str]:
        """Return spaces for a stand-in that would melt into a word when what is between is gone."""
        text, marks = self._view.text, self._view.marks
        start, end = region.start, region.end
        index = bisect_left(marks, start)
        while index > 0 and marks[index - 1] == start - 1:
            index, start = index - 1, start - 1
        while index < len(marks) and marks[index] < end:
            index += 1
        while index < len(marks) and marks[index] == end:
            index, end = index + 1, end + 1
        left, right = text[start - 1 : start], text[end : end + 1]
        is_melting = start == self._part_end or melts_after(left)
        before = is_melting and (start < region.start or is_control(left))
        after = melts_before(right) and (end > region.end or is_control(right))
        return " " * before, " " * after

    def _tags(self) -> Iterator[MaskedTag]:
        """Yield the tags that are not in a part; partners are counted among them."""
        numbers = {index: number for number, index in enumerate(self._hidden)}
        for index, masked in checked(self._hidden.items(), self._check):
            tag = self._view.tags[index]
            partner = None if tag.partner is None else numbers.get(tag.partner)
            yield MaskedTag(tag.start, tag.end, masked, tag.is_closing, partner)


def _between(hidden: Sequence[_Hidden], start: int, end: int) -> Sequence[_Hidden]:
    """Those that begin in a span of the source."""
    first, last = (bisect_left(hidden, edge, key=_source_start) for edge in (start, end))
    return hidden[first:last]


def _source_start(hidden: Part | MaskedTag) -> int:
    return hidden.start


def _masked_start(hidden: Part | MaskedTag) -> int:
    return hidden.masked[0]
