"""From what the model made of a sentence to the text that the caller gets."""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass

from service.text.protect.masking import Masked, Part
from service.text.protect.options import Kind
from service.text.protect.placing import place
from service.text.protect.settling import Decoded, Settled, settle
from service.text.protect.tree import Node, tree
from service.text.rewriting import Rewriter, Span, SpanMap
from service.text.words import is_spaceless

_SPECIAL = re.compile("[&<>]")
_OPENING = "([{<«“‘„¿¡'’-/"
_CLOSING = ")]}>»”’'.,;:!?…"


@dataclass(frozen=True, slots=True)
class RestoredPart:
    """What came out as it was (a TERM: as its target term): a span of each text."""

    kind: Kind
    source: Span
    target: Span

    def moved(self, source: int, target: int) -> "RestoredPart":
        """The same in texts that begin so many characters earlier."""
        (start, end), (first, last) = self.source, self.target
        spans = (start + source, end + source), (first + target, last + target)
        return RestoredPart(self.kind, *spans)


@dataclass(frozen=True, slots=True, eq=False)
class Restored:
    """The final text of a sentence.

    parts: parts and tags, in the order of `text`.
    map: from what was decoded to `text`, for the spans of target tokens.
    """

    text: str
    parts: tuple[RestoredPart, ...]
    map: SpanMap


def restore(
    masked: Masked, sentence: Span, decoded: Decoded, parts: Sequence[Part] | None = None
) -> Restored:
    """Put every part and tag of a sentence, a span of `masked.text`, into its translation.

    parts: those of the sentence, if the model has seen others than `masked` has.
    """
    settled = settle(decoded, masked.parts_of(sentence) if parts is None else parts)
    root = tree(masked, sentence)
    place(root, settled.links)
    return _Writer(masked, decoded.text, settled).restored(root)


class _Writer:
    def __init__(self, masked: Masked, text: str, settled: Settled) -> None:
        self._masked, self._text = masked, text
        self._words = settled.words
        self._dropped = [*settled.dropped[::-1]]  # the next one is last
        self._writer = Rewriter(text)
        self._next = 0  # the word to be written next
        self._is_inserted = False  # whether the last word stands where the model wrote none
        self._is_spaced = False  # what stands before the next word has been written
        self._last = ""  # the last character that can be seen and is no tag
        self._parts: list[RestoredPart] = []

    def restored(self, root: Node) -> Restored:
        for node, is_left in root.walk():
            first, last = node.place
            self._write_words(last if is_left else first)
            if is_left and node.closing is not None:
                self._write_tag(node.closing)
            elif not is_left and node.is_point:
                self._write_point(node)
            elif not is_left and node.opening is not None:
                self._space()
                self._write_tag(node.opening)
        self._write_gap(len(self._text))
        text, map = self._writer.finish()
        return Restored(text, tuple(self._parts), map)

    def _write_words(self, end: int) -> None:
        while self._next < end:
            self._space()
            word = self._words[self._next]
            if word.part is None:
                self._copy(word.end)
                self._last = self._text[word.end - 1]
            else:
                self._write_part(word.part, word.end)
            self._is_inserted = word.start == word.end
            self._is_spaced = False
            self._next += 1

    def _write_part(self, part: Part, end: int) -> None:
        target = self._writer.replace(end, part.output)
        position = target[0]
        for source in part.pieces:
            length = source[1] - source[0]
            self._parts.append(RestoredPart(part.kind, source, (position, position + length)))
            position += length
        if not part.pieces:
            self._parts.append(RestoredPart(part.kind, (part.start, part.end), target))
        self._last = part.output[-1]

    def _write_tag(self, tag: Span) -> None:
        start, end = tag
        target = self._writer.insert(self._masked.source[start:end])
        self._parts.append(RestoredPart(Kind.TAG, tag, target))

    def _write_point(self, point: Node) -> None:
        """Write tags that stand by themselves, with space where the source has it."""
        assert point.opening is not None
        source, (start, end) = self._masked.source, point.opening
        is_spaced_before = source[start - 1 : start].isspace()
        if is_spaced_before and not self._space() and self._last:
            self._writer.insert(" ")
        self._write_tag(point.opening)
        is_spaced_after = source[end : end + 1].isspace()
        if is_spaced_before and is_spaced_after and self._first() not in _CLOSING:
            self._writer.insert(" ")

    def _space(self) -> bool:
        """Write what stands before the next word, once; returns whether it was anything."""
        if self._is_spaced or self._next == len(self._words):
            return False
        word = self._words[self._next]
        is_written = self._write_gap(word.start)
        is_inserted = self._is_inserted or word.start == word.end
        if not is_written and is_inserted and _wants_space(self._last, self._first()):
            self._writer.insert(" ")
            is_written = True
        self._is_spaced = True
        return is_written

    def _first(self) -> str:
        """Return the first character of the next word."""
        if self._next == len(self._words):
            return ""
        word = self._words[self._next]
        return word.part.output[0] if word.part else self._text[word.start]

    def _write_gap(self, end: int) -> bool:
        """Copy the space up to `end`, without dropped words; returns whether there was any."""
        start = self._writer.position
        gap = self._text[start:end]
        if not self._dropped or self._dropped[-1][1] > end:
            self._copy(end)
            return gap != ""
        while self._dropped and self._dropped[-1][1] <= end:
            start = self._dropped.pop()[1]
        is_inside = self._last != "" and end < len(self._text)
        gap = self._text[start:end] if is_inside else ""
        self._writer.replace(end, gap)
        return gap != ""

    def _copy(self, end: int) -> None:
        if self._masked.html:
            for match in _SPECIAL.finditer(self._text, self._writer.position, end):
                self._writer.keep(match.start())
                self._writer.replace(match.end(), html.escape(match[0], quote=False))
        self._writer.keep(end)


def _wants_space(left: str, right: str) -> bool:
    """Whether two characters need space between them."""
    if not left or not right or left in _OPENING or right in _CLOSING:
        return False
    return not (is_spaceless(left) or is_spaceless(right))
