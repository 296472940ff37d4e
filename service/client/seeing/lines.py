"""A line of text taken apart into what the model has seen, and what lies between.

What several tokens share is one part of the line: a word, where words are asked for, or a character
that is spelt in bytes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

Span = tuple[int, int]
"""Code points of a line, begin <= i < end."""
_MARK = "␣"


@dataclass(frozen=True, slots=True)
class Token:
    """A token of the model; its span is empty if it stands for no text."""

    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a line.

    text: of the line; of a ghost, which stands for no text, the token's own (`</s>`).
    first, end: the tokens that it is, first <= i < end; none for what the model has not seen.
    word: its index among the words that were asked for.
    read_as: what the model had in its place, where that is something else.
    """

    text: str
    first: int = 0
    end: int = 0
    word: int | None = None
    is_ghost: bool = False
    read_as: str = ""

    @property
    def is_seen(self) -> bool:
        return self.first < self.end


Line = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class _Group:
    """Neighbouring tokens first <= i < end, and the text that they stand for."""

    first: int
    end: int
    span: Span
    word: int | None
    is_mark: bool

    def takes(self, other: "_Group") -> bool:
        if self.is_mark:
            return True
        if self.word is not None and self.word == other.word:
            return True
        return other.span[0] < self.span[1] and other.span[0] < other.span[1]

    def with_next(self, other: "_Group") -> "_Group":
        if self.is_mark:
            return replace(other, first=self.first)
        return replace(self, end=other.end, span=(self.span[0], max(self.span[1], other.span[1])))


def line_of(text: str, tokens: Sequence[Token], words: Sequence[Span] = ()) -> Line:
    """All of `text` in order, by its words, and by single tokens where there are none."""
    parts, position = list[Part](), 0
    for group in _groups(tokens, words):
        begin, end = group.span
        if position < begin:
            parts.append(Part(text[position:begin]))
        parts.append(_part(text[begin:end], group, tokens[group.first : group.end]))
        position = max(position, end)
    if position < len(text):
        parts.append(Part(text[position:]))
    return tuple(parts)


def _groups(tokens: Sequence[Token], words: Sequence[Span]) -> Iterator[_Group]:
    last: _Group | None = None
    for index, token in enumerate(tokens):
        # A mark of the beginning of a word that stands alone belongs to what follows it.
        group = _Group(index, index + 1, token.span, _word_at(token.span, words), not token.text)
        if last and last.takes(group):
            last = last.with_next(group)
        else:
            if last:
                yield last
            last = group
    if last:
        yield last


def _word_at(span: Span, words: Sequence[Span]) -> int | None:
    """The first word that a token overlaps."""
    overlapping = (i for i, (begin, end) in enumerate(words) if begin < span[1] and span[0] < end)
    return None if span[0] == span[1] else next(overlapping, None)


def _part(text: str, group: _Group, tokens: Sequence[Token]) -> Part:
    read = "".join(token.text for token in tokens)
    is_ghost = not text
    return Part(
        text=text or read or _MARK,
        first=group.first,
        end=group.end,
        word=group.word,
        is_ghost=is_ghost,
        read_as="" if is_ghost or read.casefold() == text.casefold() else read,
    )
