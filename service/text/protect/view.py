"""A text to look for patterns in: each tag is one mark, and in HTML entities are characters."""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

from service.text.checking import Check, checked, go_on
from service.text.protect.markup import Tag, find_tags
from service.text.protect.options import Protection
from service.text.protect.patterns import TAG_MARK
from service.text.rewriting import Rewriter, Span, SpanMap
from service.text.searching import find_all

_ENTITY = re.compile(r"&(?:#[0-9]{1,8}|#x[0-9a-f]{1,8}|[a-z][a-z0-9]{1,31});?", re.IGNORECASE)
_WHITE_SPACE = re.compile(r"(?<![ \t\r\n\f])[ \t\r\n\f]++")


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """`text` as it reads; `marks` are the places in it of the `tags` of the source."""

    source: str
    text: str
    map: SpanMap
    tags: tuple[Tag, ...]
    marks: tuple[int, ...]

    @classmethod
    def of(cls, source: str, protection: Protection, check: Check = go_on) -> "View":
        tags = find_tags(source, check) if protection.tags else ()
        writer, marks = Rewriter(source), []
        for tag in checked(tags, check):
            _read(writer, source, tag.start, protection.html, check)
            marks.append(writer.replace(tag.end, TAG_MARK)[0])
        _read(writer, source, len(source), protection.html, check)
        text, map = writer.finish()
        return cls(source, text, map, tags, tuple(marks))

    def source_text(self, start: int, end: int) -> str:
        start, end = self.map.to_old(start, end)
        return self.source[start:end]


def _read(writer: Rewriter, source: str, end: int, is_html: bool, check: Check) -> None:
    """Copy the text up to the next tag, as it reads."""
    if not is_html:
        return writer.keep(end)
    for (start, stop), new in sorted(_readings(source, writer.position, end, check)):
        writer.keep(start)
        writer.replace(stop, new)
    writer.keep(end)


def _readings(source: str, start: int, end: int, check: Check) -> Iterator[tuple[Span, str]]:
    for match in find_all(_ENTITY, source, start, end, check):
        if (character := html.unescape(match[0])) != match[0]:
            yield match.span(), character
    for match in find_all(_WHITE_SPACE, source, start, end, check):
        if "\n" in match[0]:
            yield match.span(), " "
