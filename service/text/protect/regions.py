"""Which stretches of a view are hidden from the model.

What is found by different rules may overlap, touch, or hold one tag of a pair: regions are grown
and joined until they can be replaced one by one.
"""

import html
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from service.text.checking import Check, checked, go_on
from service.text.protect.markup import verbatim_elements
from service.text.protect.options import Kind, Protection
from service.text.protect.patterns import find
from service.text.protect.view import View
from service.text.rewriting import Span
from service.text.words import is_inside, is_word_character

# Two parts with one of these between them are one: `{host}:{port}`.
_CONNECTORS = "-./\\:@#=&_"


@dataclass(frozen=True, slots=True)
class Region:
    """`view.text[start:end]`, which comes out as `output`."""

    start: int
    end: int
    kind: Kind
    output: str


@dataclass(frozen=True, slots=True, order=True)
class _Found:
    start: int
    end: int
    kind: Kind


def find_regions(
    view: View, protection: Protection, spans: Sequence[Span], check: Check = go_on
) -> list[Region]:
    """Return regions in order, which don't overlap; `spans` are the caller's, into its text."""
    # United before they grow as well: each looks at all of its tags, which nested ones share.
    found = _united(view.text, checked(_found(view, protection, spans, check), check))
    grown = (_grown(view, one) for one in checked(found, check))
    kept = [
        Region(one.start, one.end, one.kind, view.source_text(one.start, one.end))
        for one in checked(_united(view.text, grown), check)
    ]
    if not protection.glossary:
        return kept
    return sorted([*kept, *_terms(view, protection, kept, check)], key=_start)


def _found(
    view: View, protection: Protection, spans: Sequence[Span], check: Check
) -> Iterator[_Found]:
    for span in spans:
        yield _Found(*view.map.to_new(*span), Kind.SPAN)
    for span in verbatim_elements(view.tags) if protection.html else ():
        yield _Found(*view.map.to_new(*span), Kind.TAG)
    for kind in protection.patterns:
        for start, end in find(kind, view.text, check):
            yield _Found(start, end, kind)


def _terms(
    view: View, protection: Protection, kept: Sequence[Region], check: Check
) -> Iterator[Region]:
    for (start, end), target in protection.terms.find(view.text, check):
        after = bisect_left(kept, end, key=_start)
        if after == 0 or kept[after - 1].end <= start:
            output = html.escape(target, quote=False) if protection.html else target
            yield Region(start, end, Kind.TERM, output)


def _grown(view: View, found: _Found) -> _Found:
    """Widen to whole words and signs, and to both tags of a pair."""
    start, end, text = found.start, found.end, view.text
    first, last = bisect_left(view.marks, start), bisect_left(view.marks, end)
    for tag in view.tags[first:last]:
        if tag.partner is not None:
            start, end = min(start, view.marks[tag.partner]), max(end, view.marks[tag.partner] + 1)
    while start > 0 and (is_word_character(text[start - 1]) or is_inside(text, start)):
        start -= 1
    while end < len(text) and (is_word_character(text[end]) or is_inside(text, end)):
        end += 1
    return _Found(start, end, found.kind)


def _united(text: str, found: Iterable[_Found]) -> Iterator[_Found]:
    """Join those that overlap, touch, or have no more than a connector between them."""
    current: _Found | None = None
    for one in sorted(found, key=lambda found: (found.start, -found.end)):
        if current is None:
            current = one
        elif one.start <= current.end or (
            one.start == current.end + 1 and text[current.end] in _CONNECTORS
        ):
            current = _Found(current.start, max(current.end, one.end), current.kind)
        else:
            yield current
            current = one
    if current is not None:
        yield current


def _start(region: Region) -> int:
    return region.start
