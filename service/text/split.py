"""Where to cut a sentence that is longer than a model takes.

Owns the order of preference: after the end of a sentence, after punctuation inside it, before a
word that begins a clause, at white space, between any two characters. Never inside what a reader
sees as one character, unless that alone is over the limit.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import cache

# Words that begin a clause; other languages are cut at white space instead.
_CLAUSE_WORDS = {
    "en": "although and as because before but if nor or since so than that though unless until when"
    " where whereas whether which while who whom whose yet",
    "fr": "afin alors car comme dont donc et lorsque mais ni où ou parce pendant puis puisque quand"
    " que qui quoique si tandis",
}
_AFTER_SENTENCE = r"[.!?…]['\"”’»)\]]*(?=\s)|[。！？]['\"”’»）」』]*"
_AFTER_PUNCTUATION = r"[,;:)\]»”](?=\s)|[—–](?=\s|\w)|[，、；：）」』،؛]"
# What a pattern may need to see on either side of a place, at most.
_LOOK_AROUND = 16
# Of a longer row of flags, halves may go apart.
_MAX_FLAG_LETTERS = 256
_ZERO_WIDTH_JOINER = "\u200d"


def split_tokens(text: str, starts: Sequence[int], limit: int, language: str) -> list[int]:
    """Where to cut `text` into as few and as equal parts as have at most `limit` tokens each.

    starts: of the tokens of the whole text, rising. A part that is tokenised by itself may come
    out a token or two longer. Returns places inside `text`, rising; none if it fits.
    """
    cuts, first, begin = list[int](), 0, 0
    while (left := len(starts) - first) > limit and begin + 1 < len(text):
        share = -(-left // -(-left // limit))
        low = max(starts[first + (share + 1) // 2], begin + 1)
        high = max(starts[first + limit], low)
        begin = best_cut(text, (low, high), starts[first + share], language)
        cuts.append(begin)
        first = max(first + 1, bisect_left(starts, begin))
    return cuts


def best_cut(text: str, bounds: tuple[int, int], ideal: int, language: str) -> int:
    """The best place to cut between two inclusive bounds: best in kind, then nearest to `ideal`."""
    low, high = bounds
    ideal = min(max(ideal, low), high)
    for pattern in _patterns(language.partition("-")[0]):
        places = pattern.finditer(text, max(0, low - _LOOK_AROUND), high + _LOOK_AROUND)
        found = (match.end() for match in places)
        if (cut := _nearest(found, bounds, ideal)) is not None:
            return cut
    outwards = sorted(range(low, high + 1), key=lambda index: abs(index - ideal))
    return next((i for i in outwards if not _is_inside_character(text, i)), ideal)


def _nearest(places: Iterator[int], bounds: tuple[int, int], ideal: int) -> int | None:
    low, high = bounds
    inside = (place for place in places if low <= place <= high)
    return min(inside, key=lambda place: abs(place - ideal), default=None)


@cache
def _patterns(language: str) -> tuple[re.Pattern[str], ...]:
    """Each matches up to a place to cut at; best kind first."""
    words = "|".join(_CLAUSE_WORDS.get(language, "").split())
    before_clause = [rf"\s(?=(?:{words})\b)"] if words else []
    kinds = [_AFTER_SENTENCE, _AFTER_PUNCTUATION, *before_clause, r"\s(?=\S)"]
    return tuple(re.compile(kind, re.IGNORECASE) for kind in kinds)


def _is_inside_character(text: str, index: int) -> bool:
    """Whether the two characters around `index` belong together: nearly UAX 29's clusters."""
    if not 0 < index < len(text):
        return False
    before, after = text[index - 1], text[index]
    return (
        unicodedata.category(after)[0] == "M"
        or _ZERO_WIDTH_JOINER in (before, after)
        or "\U0001f3fb" <= after <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= after <= "\U000e007f"  # tags of flags
        or ("\u1160" <= after <= "\u11ff" and "\u1100" <= before <= "\u11ff")  # Hangul jamo
        or (_is_flag_letter(before) and _is_flag_letter(after) and _is_second(text, index))
    )


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _is_second(text: str, index: int) -> bool:
    """Whether the flag letter at `index` is the second of its pair."""
    first = index
    while first > max(0, index - _MAX_FLAG_LETTERS) and _is_flag_letter(text[first - 1]):
        first -= 1
    return (index - first) % 2 == 1
