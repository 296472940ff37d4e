"""The words of a translation, with every part of its sentence among them exactly once.

A part takes the place of its stand-in. Where the model wrote that twice, the one that looked most
at the part counts, and the other goes. Where it did not write it, the part takes the place of the
word that looks at it: its translation if it is a term, or a stand-in that the model did not copy.
Where there is no such word, the part goes where the links around it say.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from service.text.protect.masking import Part
from service.text.protect.options import Kind
from service.text.protect.placing import Links, Weights
from service.text.rewriting import Span
from service.text.words import SENTENCE_SIGNS, is_loose, words

# How much a word looks at what it stands for. A term has a translation somewhere; digits seldom
# stand for anything but a number.
_SURE_WEIGHT = 0.5
_MIN_WEIGHT_OF_TERM = 0.25
_MIN_WEIGHT_OF_DIGITS = 0.1
# Punctuation says little of where words are.
_WEIGHT_OF_SIGNS = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class Decoded:
    """What the model made of a sentence.

    text: the translation. target: spans of its tokens in it, in order.
    source: spans of the source tokens in the masked text, in order; empty for the sentence's end.
    weights: (target, source); what is no number, or less than zero, counts as zero.
    """

    text: str
    target: Sequence[Span]
    source: Sequence[Span]
    weights: NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class Word:
    """`text[start:end]` of what was decoded, which `part` takes the place of, if there is one."""

    start: int
    end: int
    part: Part | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Settled:
    """words: in order. links: of them. dropped: spans of words that have to go, in order."""

    words: Sequence[Word]
    links: Links
    dropped: Sequence[Span]


def settle(decoded: Decoded, parts: Sequence[Part]) -> Settled:
    """Find the place of each of the `parts` of a sentence in its translation."""
    return _Settling(decoded, parts).settled()


class _Settling:
    def __init__(self, decoded: Decoded, parts: Sequence[Part]) -> None:
        self._decoded = decoded
        self._words = [Word(*span) for span in words(decoded.text)]
        self._weights = _word_weights(decoded, self._words)
        self._links = Links(self._weights, decoded.source)
        self._parts = parts
        self._owners: dict[int, Part] = {}  # by word
        self._dropped: set[int] = set()

    def settled(self) -> Settled:
        self._find_stand_ins()
        missing = [part for part in self._missing() if not self._find_word(part)]
        for word, part in self._owners.items():
            self._weights[word] = self._on(part)
        links = Links(self._weights, self._decoded.source)
        gaps = [(links.gap(part.masked, self._gaps(part)), part) for part in missing]
        return self._with_inserted(sorted(gaps, key=lambda gap: gap[0]))

    def _find_stand_ins(self) -> None:
        """Give words that are stand-ins to their parts, then to others, and drop those left."""
        hidden = [part for part in self._parts if not part.is_shown]
        stand_ins = {part.stand_in.casefold() for part in hidden}
        found = [i for i, word in enumerate(self._words) if self._text(word) in stand_ins]
        pairs = []
        for number, part in enumerate(hidden):
            looks = self._links.inside(part.masked)
            for word in found:
                is_other = self._text(self._words[word]) != part.stand_in.casefold()
                pairs.append((is_other, -looks[word], number, word))
        settled: set[int] = set()
        for *_, number, word in sorted(pairs):
            if number not in settled and word not in self._owners:
                settled.add(number)
                self._owners[word] = hidden[number]
        self._dropped = set(found) - set(self._owners)

    def _missing(self) -> list[Part]:
        placed = {part.masked for part in self._owners.values()}
        return [part for part in self._parts if part.masked not in placed]

    def _find_word(self, part: Part) -> bool:
        """Give a part the word that stands for it, if one does.

        What was more than one word takes the place of its neighbours too, if they look there.
        """
        looks = self._links.inside(part.masked)
        free = [index for index in range(len(self._words)) if self._is_free(index)]
        best = self._best_word(part.kind, looks, free)
        if best is None:
            return False
        self._owners[best] = part
        if len(words(part.stand_in)) > 1:
            likely = {index for index in free if looks[index] >= _MIN_WEIGHT_OF_TERM}
            self._dropped |= _neighbours(best, likely)
        return True

    def _best_word(self, kind: Kind, looks: Weights, free: Sequence[int]) -> int | None:
        """The longest word that is sure, as both of `l'eau` may be; else what is likely at all."""
        sure = [index for index in free if looks[index] >= _SURE_WEIGHT]
        if kind is Kind.NUMBER:
            digits = [index for index in free if looks[index] >= _MIN_WEIGHT_OF_DIGITS]
            digits = [index for index in digits if self._text(self._words[index])[0].isdigit()]
            sure = digits or sure
        if sure:
            return max(sure, key=lambda index: (self._length(index), looks[index]))
        likely = [index for index in free if looks[index] >= _MIN_WEIGHT_OF_TERM]
        return max(likely, key=lambda index: looks[index]) if kind is Kind.TERM and likely else None

    def _is_free(self, index: int) -> bool:
        """Whether a word may stand for a part: it has no place yet, and is no `c` of `c'est`."""
        is_taken = index in self._owners or index in self._dropped
        end = self._words[index].end
        is_elided = self._decoded.text[end : end + 1] in ("'", "’")
        return not (is_taken or is_elided) and self._text(self._words[index])[0].isalnum()

    def _length(self, index: int) -> int:
        return self._words[index].end - self._words[index].start

    def _gaps(self, part: Part) -> list[int]:
        """Return the gaps that a part may go into: not in `t-il`, not behind what ends all."""
        last = len(self._words)
        loose = [0, *filter(self._is_loose, range(1, last)), last]
        is_final = all(start < part.masked[1] for start, end in self._decoded.source if start < end)
        if last and not is_final and self._text(self._words[-1]) in SENTENCE_SIGNS:
            loose.pop()
        return loose

    def _is_loose(self, gap: int) -> bool:
        left, right = self._words[gap - 1], self._words[gap]
        return is_loose(self._decoded.text, left.end, right.start)

    def _with_inserted(self, inserted: Sequence[tuple[int, Part]]) -> Settled:
        """Return the words that stay, with the missing parts before the words of their gaps."""
        result: list[Word] = []
        rows: list[Weights] = []
        queue = list(inserted[::-1])
        for index in range(len(self._words) + 1):
            while queue and queue[-1][0] == index:
                part = queue.pop()[1]
                position = self._words[index - 1].end if index else 0
                result.append(Word(position, position, part))
                rows.append(self._on(part))
            if index < len(self._words) and index not in self._dropped:
                result.append(replace(self._words[index], part=self._owners.get(index)))
                rows.append(self._weights[index])
        dropped = [(self._words[i].start, self._words[i].end) for i in sorted(self._dropped)]
        weights = np.array(rows).reshape(len(rows), len(self._decoded.source))
        return Settled(result, Links(weights, self._decoded.source), dropped)

    def _on(self, part: Part) -> Weights:
        """Return the weights of a word that looks at the stand-in of `part` only."""
        start, end = part.masked
        row = np.array([float(start <= token[0] < end) for token in self._decoded.source])
        return row / max(1.0, float(row.sum()))

    def _text(self, word: Word) -> str:
        return self._decoded.text[word.start : word.end].casefold()


def _neighbours(index: int, others: set[int]) -> set[int]:
    """Return those of `others` that are next to `index` without anything between them."""
    found = {index}
    for step in (-1, 1):
        neighbour = index + step
        while neighbour in others:
            found.add(neighbour)
            neighbour += step
    return found - {index}


def _word_weights(decoded: Decoded, words: Sequence[Word]) -> Weights:
    """Return the mean weights of the tokens of each word, (words, source)."""
    weights = np.maximum(np.nan_to_num(np.asarray(decoded.weights, float), posinf=0.0), 0.0)
    starts, ends = [span[0] for span in decoded.target], [span[1] for span in decoded.target]
    rows = np.zeros((len(words), len(decoded.source)))
    for index, word in enumerate(words):
        first, last = bisect_right(ends, word.start), bisect_left(starts, word.end)
        if first < last:
            is_sign = not decoded.text[word.start].isalnum()
            rows[index] = weights[first:last].mean(axis=0) * (_WEIGHT_OF_SIGNS if is_sign else 1)
    return rows
