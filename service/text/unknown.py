"""Characters that a model can't spell: a text of them is foreign, a few are hidden from it.

"I ❤ 出口 signs"  ->  "I Tom Boston signs", and back through `protect.restore`

Words and signs are hidden as `protect` hides its parts, and beside them: no part is within another,
so that one look at a translation finds the place of all.
"""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from unicodedata import category

from service.text.protect import Kind, Masked, Part
from service.text.protect.stand_ins import melts_after, melts_before, stand_ins, used_words
from service.text.rewriting import Rewriter, Span, SpanMap
from service.text.words import is_control, words


@dataclass(frozen=True, slots=True, eq=False)
class Readable:
    """A sentence of which the model can read everything: `text`.

    parts: all that is not to be translated, in order, each with the stand-in that is in `text`;
        their `masked` spans are in the text that the sentence was taken from.
    """

    text: str
    parts: tuple[Part, ...]
    _map: SpanMap  # from the sentence

    def sentence_span(self, start: int, end: int) -> Span:
        """Return the span in the sentence of a span of `text`: all of a part that it touches."""
        return self._map.to_old(start, end)


def is_foreign(text: str, unknown: Sequence[int]) -> bool:
    """Whether most letters of a text are unknown; these are places in it."""
    letters = sum(map(str.isalpha, text))
    return 2 * sum(text[index].isalpha() for index in unknown) > letters


def hide_unknown(
    masked: Masked, sentence: Span, text: str, unknown: Sequence[int]
) -> Readable | None:
    """Hide unknown characters from the model, with the words or parts that they are in.

    sentence: a span of `masked.text`; text: what stands there, in any case. unknown: places in it.
    Controls and joiners just go, and spaces become usual ones. Unknown punctuation stays: a name in
    its place would say more than it does. None if that is all.
    """
    return _Hiding(masked, sentence, text, frozenset(unknown)).readable()


class _Hiding:
    """Hides what is unknown of one sentence. Spans are in it."""

    def __init__(self, masked: Masked, sentence: Span, text: str, unknown: Set[int]) -> None:
        self._masked, self._text, self._unknown = masked, text, unknown
        self._begin = begin = sentence[0]
        parts = masked.parts_of(sentence)
        self._parts = {_clipped(part, sentence): part for part in parts}
        # The rest of a part that another sentence has begins this one, if anything does.
        across = masked.part_across(begin)
        self._first = min(across.masked[1] - begin, len(text)) if across else 0
        self._starts = {start for start, _ in self._parts}
        self._ends = {end for _, end in self._parts}

    def readable(self) -> Readable | None:
        hidden = list(self._hidden())
        inside = {index for span in hidden for index in range(*span)}
        gone = [(index, index + 1) for index in self._unknown - inside if self._goes(index)]
        if not hidden and not gone:
            return None
        writer, names = Rewriter(self._text), stand_ins(used_words(self._text))
        parts = dict(self._parts)
        for start, end in sorted([*hidden, *gone]):
            writer.keep(start)
            if start in inside:
                parts[start, end] = part = self._part((start, end), next(names))
                writer.replace(end, self._padded(part.stand_in, start, end))
            else:
                # It may be all that is between a stand-in and a word.
                is_edge = start in self._ends or end in self._starts
                writer.replace(end, " " * (is_edge or self._text[start].isspace()))
        text, map = writer.finish()
        return Readable(text, tuple(part for _, part in sorted(parts.items(), key=_span)), map)

    def _hidden(self) -> Iterator[Span]:
        """Yield the words, signs and parts to hide, in order."""
        position, end = self._first, len(self._text)
        for span in [*self._parts, (end, end)]:
            yield from self._runs(position, span[0])
            if self._matters(span):
                yield span
            position = span[1]

    def _runs(self, start: int, end: int) -> Iterator[Span]:
        """Yield the words and signs to hide between two parts; neighbours are one."""
        run: Span | None = None
        for first, last in words(self._text[start:end]):
            word = first + start, last + start
            if not (self._matters(word) or all(map(self._goes, range(*word)))):
                continue
            if run and run[1] == word[0]:
                run = run[0], word[1]
                continue
            if run and self._matters(run):
                yield run
            run = word
        if run and self._matters(run):
            yield run

    def _part(self, span: Span, name: str) -> Part:
        if part := self._parts.get(span):
            return replace(part, stand_in=name, is_shown=False)
        masked = span[0] + self._begin, span[1] + self._begin
        pieces = self._masked.pieces(masked)
        output = "".join(self._masked.source[start:end] for start, end in pieces)
        edges = pieces[0][0], pieces[-1][1]
        return Part(Kind.UNKNOWN, *edges, output, name, masked, pieces=pieces)

    def _padded(self, name: str, start: int, end: int) -> str:
        """The stand-in, with spaces where it would melt into its neighbours."""
        text = self._text
        before = start in self._ends or melts_after(text[start - 1 : start])
        after = end in self._starts or melts_before(text[end : end + 1])
        return " " * before + name + " " * after

    def _matters(self, span: Span) -> bool:
        unknown = [index for index in range(*span) if index in self._unknown]
        return any(category(self._text[i])[0] not in "PZ" and not self._goes(i) for i in unknown)

    def _goes(self, index: int) -> bool:
        if index not in self._unknown:
            return False
        character = self._text[index]
        return index < self._first or character.isspace() or is_control(character)


def _clipped(part: Part, sentence: Span) -> Span:
    start, end = part.masked
    return start - sentence[0], min(end, sentence[1]) - sentence[0]


def _span(item: tuple[Span, Part]) -> Span:
    return item[0]
