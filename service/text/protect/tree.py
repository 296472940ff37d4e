"""The tags of one sentence as a tree, and which of them belong to the sentence at all.

A tag at an end of a sentence belongs to what is between sentences, unless it is one of a pair of
which the other is inside:

    <p>‹<b>No</b>, Tom.›</p>      ‹› are the ends of the sentence: <b> and </b> are in it

Elements may go on in other sentences: then they reach the end of this one.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from service.text.protect.masking import Masked, MaskedTag
from service.text.rewriting import Span

_VISIBLE = re.compile(r"\S")


@dataclass(slots=True, eq=False)
class Node:
    """An element or, if `is_point`, tags that hold no text.

    content: its span in the masked text.
    opening, closing: spans of tags in the source; None where the sentence has no such tag. All
        tags of a point are its opening.
    place: which words of the translation are in it, `words[first:last]`; set by `placing`.
    """

    content: Span
    opening: Span | None = None
    closing: Span | None = None
    is_point: bool = False
    children: list["Node"] = field(default_factory=list)
    place: Span = (0, 0)

    def walk(self) -> Iterator[tuple["Node", bool]]:
        """Yield each node when it is entered, and again (True) when it is left."""
        stack = [(self, False)]
        while stack:
            node, is_left = stack.pop()
            yield node, is_left
            if not is_left:
                stack.append((node, True))
                stack += [(child, False) for child in reversed(node.children)]


def extent(masked: Masked, sentence: Span) -> Span:
    """Return the span in the source of what a translated sentence replaces, its tags included.

    The extents of sentences in order don't overlap; what is between them stays as it is.
    """
    start, end = masked.source_span(*sentence)
    if cut := masked.part_across(sentence[0]):
        start = cut.end
    first, last = _own_tags(masked, sentence)
    if first < last:
        start = min(start, masked.tags[first].start)
        end = max(end, masked.tags[last - 1].end)
    return start, max(start, end)


def tree(masked: Masked, sentence: Span) -> Node:
    """Return a root that spans the sentence, with its tags."""
    first, last = _own_tags(masked, sentence)
    stack = [Node(sentence)]
    for tag in reversed(masked.tags[first:last]):
        if tag.is_closing and tag.partner is not None and tag.partner < first:
            _push(stack, Node(sentence))
    index = first
    while index < last:
        index = _add(masked, stack, index, last)
    return stack[0]


def _add(masked: Masked, stack: list[Node], index: int, last: int) -> int:
    """Add the tag at `index`, and those that make one point with it; returns the next index."""
    tag = masked.tags[index]
    stop = _end_of_point(masked, index, last)
    if stop > index:
        after = masked.tags[stop - 1]
        content, point = (tag.masked[0], after.masked[1]), (tag.start, after.end)
        stack[-1].children.append(Node(content, point, is_point=True))
        return stop
    if tag.is_closing:
        node = stack.pop()
        node.content, node.closing = (node.content[0], tag.masked[0]), (tag.start, tag.end)
    else:
        content = tag.masked[1], stack[-1].content[1]
        _push(stack, Node(content, opening=(tag.start, tag.end)))
    return index + 1


def _end_of_point(masked: Masked, index: int, last: int) -> int:
    """Return where the tags end that stand together and hold no text; `index` if there are none."""
    end = index
    while end < last and (end == index or masked.tags[end - 1].end == masked.tags[end].start):
        tag = masked.tags[end]
        if tag.partner is None:
            end += 1
        elif tag.is_closing or tag.partner >= last or _holds_text(masked, tag):
            break
        else:
            end = tag.partner + 1
    return end


def _holds_text(masked: Masked, tag: MaskedTag) -> bool:
    assert tag.partner is not None
    end = masked.tags[tag.partner].masked[0]
    return _VISIBLE.search(masked.text, tag.masked[1], end) is not None


def _push(stack: list[Node], node: Node) -> None:
    stack[-1].children.append(node)
    stack.append(node)


def _own_tags(masked: Masked, sentence: Span) -> Span:
    """Return which of the tags are in a sentence, `tags[first:last]`."""
    start, end = sentence
    tags = masked.tags
    first = inner = bisect_right(tags, start, key=_end)
    last = outer = max(inner, bisect_left(tags, end, key=_start))
    for index in range(inner - 1, -1, -1):
        if tags[index].masked != (start, start):
            break
        if _is_in(tags[index].partner, inner, outer):
            first = index
    for index in range(outer, len(tags)):
        if tags[index].masked != (end, end):
            break
        if _is_in(tags[index].partner, inner, outer):
            last = index + 1
    return first, last


def _is_in(index: int | None, first: int, last: int) -> bool:
    return index is not None and first <= index < last


def _start(tag: MaskedTag) -> int:
    return tag.masked[0]


def _end(tag: MaskedTag) -> int:
    return tag.masked[1]
