"""A new text made out of an old one, and which characters of one became which of the other.

    old   a <b>cat</b>, {x}        Rewriter.replace(5, "") drops the tag that starts at 2,
    new   a cat, Tom               Rewriter.keep(8) copies "cat", and so on

Positions count Unicode code points. Maps chain: what one gives, the next one takes.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

Span = tuple[int, int]


class SpanMap:
    """Brings spans from the old text to the new one, and back. What no edit holds is the same text.

    old, new: both sides of each edit, in order; either may be empty. A span that begins or ends
    inside an edit has all of it. What was inserted or removed at an end of a span is outside of it.
    Spans that are in order stay in order.
    """

    def __init__(self, old: Sequence[Span] = (), new: Sequence[Span] = ()) -> None:
        self._old, self._new = old, new

    def to_new(self, start: int, end: int) -> Span:
        return _mapped(start, end, self._old, self._new)

    def to_old(self, start: int, end: int) -> Span:
        return _mapped(start, end, self._new, self._old)


class Rewriter:
    """Writes the new text from left to right; `position` is how far the old one has been used."""

    def __init__(self, old: str) -> None:
        self._old = old
        self._chunks: list[str] = []
        self._old_spans: list[Span] = []  # of the edits
        self._new_spans: list[Span] = []
        self._length = 0
        self.position = 0

    def keep(self, end: int) -> None:
        """Copy the old text up to `end`."""
        self._write(self._old[self.position : end])
        self.position = end

    def replace(self, end: int, new: str) -> Span:
        """Write `new` in the place of the old text up to `end`; returns its span."""
        start = self._length
        self._write(new)
        written = start, self._length
        self._old_spans.append((self.position, end))
        self._new_spans.append(written)
        self.position = end
        return written

    def insert(self, new: str) -> Span:
        return self.replace(self.position, new)

    def finish(self) -> tuple[str, SpanMap]:
        """Copy what is left and return the new text."""
        self.keep(len(self._old))
        return "".join(self._chunks), SpanMap(self._old_spans, self._new_spans)

    def _write(self, text: str) -> None:
        self._chunks.append(text)
        self._length += len(text)


def _mapped(start: int, end: int, these: Sequence[Span], others: Sequence[Span]) -> Span:
    """Map a span by the edits of which `these` and `others` are the two sides, in order."""
    index = bisect_right(these, start, key=_start) - 1
    mapped_start = start
    if index >= 0:
        inside = start < these[index][1]
        mapped_start = others[index][0] if inside else others[index][1] + start - these[index][1]
    index = bisect_left(these, end, key=_start) - 1
    mapped_end = end
    if index >= 0:
        mapped_end = others[index][1] + max(0, end - these[index][1])
    # Only an empty span can lie on both sides of an insertion: it goes before it.
    return min(mapped_start, mapped_end), mapped_end


def _start(span: Span) -> int:
    return span[0]
