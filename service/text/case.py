"""Sentences in capitals, for a model that knows better how sentences are usually written.

    "TOM LOVES IT!"  ->  truecase  "Tom loves it!"  ->  model  "Tom adore ça !"
                     ->  upper_case  "TOM ADORE ÇA !"

Pure functions of text. `Truecaser` keeps the length of a text, so that spans in its result are
spans in what it was given; `upper_case` may not (ß -> SS) and says where every character went.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

# Letters, and what combines with them, around apostrophes: "I'LL" is one word, "T-SHIRT" two.
_LETTERS = r"[^\W\d_](?:[^\W\d_]|[\u0300-\u036f])*"
_WORD = re.compile(rf"{_LETTERS}(?:['’]{_LETTERS})*")
_MIN_LETTERS = 5
_SENTENCE_END = re.compile(r"[.!?…][^\w\s]{0,3}\s")


def is_all_caps(text: str) -> bool:
    """Whether no letter is lower case, and there are two words or at least five letters.

    What is shorter (`OK`, `NASA`, `U.S.`) is often written so for its own sake.
    """
    if not text.isupper():
        return False
    num_words = sum(map(str.isupper, text.split()))
    return num_words > 1 or sum(map(str.isalpha, text)) >= _MIN_LETTERS


def is_all_lower(text: str) -> bool:
    """Whether no letter is a capital, and there are at least two words."""
    return text.islower() and sum(map(str.islower, text.split())) > 1


class Truecaser:
    """Gives every word of a text the case that a subword vocabulary knows it in.

    A vocabulary remembers its corpus: `Tom` is one piece there and came before `tom`, `the` before
    `The`, and `tv` takes two pieces where `TV` takes one. So no list of names is needed.

    encode: the ids of a text; score: of one id, higher the more frequent, as in SentencePiece.
    """

    def __init__(
        self, encode: Callable[[str], Sequence[int]], score: Callable[[int], float]
    ) -> None:
        self._encode = encode
        self._score = score

    def __call__(self, text: str) -> str:
        """The text in its usual case, as long as it was; what begins a sentence has a capital."""
        parts, end = list[str](), 0
        for match in _WORD.finditer(text):
            between = text[end : match.start()]
            begins_sentence = not parts or _SENTENCE_END.search(between)
            end = match.end()
            is_initial = len(match[0]) == 1 and text.startswith(".", end)  # U.S., J. R. R.
            word = match[0] if is_initial else self._recase(match[0], bool(begins_sentence))
            parts += between, word
        return "".join(parts) + text[end:]

    def _recase(self, word: str, begins_sentence: bool) -> str:
        lower = _changed(word, str.lower)
        title = _changed(lower[0], str.title) + lower[1:]
        if begins_sentence:
            return title
        return min(lower, title, _changed(word, str.upper), key=self._cost)

    def _cost(self, word: str) -> tuple[int, float]:
        ids = self._encode(word)
        return len(ids), -sum(map(self._score, ids))


@dataclass(frozen=True, slots=True)
class UpperCased:
    """A text in capitals; the character at `i` of the original begins at `starts[i]` of `text`.

    `starts` has one more entry, the length of `text`, so that it maps ends of spans too.
    """

    text: str
    starts: tuple[int, ...]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where `original[start:end]` lies in `text`."""
        return self.starts[start], self.starts[end]


def upper_case(text: str) -> UpperCased:
    """`text.upper()`, with the place of every character: `Straße` becomes `STRASSE`."""
    characters = [character.upper() for character in text]
    return UpperCased("".join(characters), tuple(accumulate(map(len, characters), initial=0)))


def _changed(text: str, change: Callable[[str], str]) -> str:
    """`change(text)` as long as `text`: İ has no lower case, and ŉ no capital, of one character."""
    changed = change(text)
    if len(changed) == len(text):
        return changed
    characters = zip(text, map(change, text), strict=True)
    return "".join(new if len(new) == 1 else old for old, new in characters)
