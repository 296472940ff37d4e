"""From a text to its sentences, and nothing else: all that lies between them is the caller's.

    "  * Hello! How are you?\\r\\n"  ->  "Hello!", "How are you?"

A line is a hard border: line breaks, indentation and bullets belong to the layout, so there are as
many lines after translation as before. Inside a line `sentencex` finds the sentences. Its work is
bounded by a window, so time is linear in the text; a sentence longer than the window comes in
parts. Refuses nothing: any string has sentences, or none.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sentencex import get_sentence_boundaries  # type: ignore[import-untyped]

from service.text.layout import LAYOUT_CHARACTERS, trim
from service.text.split import best_cut

# Code points that the splitter sees at once.
MAX_WINDOW = 4096

_LINE = re.compile("[^\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")
_ASIDE = f"[{re.escape(LAYOUT_CHARACTERS)}]*+"
_BLANK = re.compile(_ASIDE)
# Bullets, quotes of e-mail, headings, numbers of lists.
_BULLETS = re.compile(rf"(?:{_ASIDE}(?:[-*+•‣◦⁃∙▪▫●○■□–—>]|\#+|\(?\d{{1,3}}[.)])(?=\s|>))*")
# A letter, words and what stands between words, and at most one stop, at the end.
_PLAIN = re.compile(r"[^\W\d_][\w ,;'’\"“”()«»%&–—-]*+[.!?…]?+[\"”]?+(?<! )")

# How the splitter reads a text: each to one character, so that places stay.
_READING = {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
_READING |= {ord(c): " " for c in map(chr, range(0x80, 0x3001)) if unicodedata.category(c) == "Zs"}
_UNSEEN = re.compile(f"[{re.escape(''.join(c for c in LAYOUT_CHARACTERS if not c.isspace()))}]")
# Words of a language that the splitter takes for abbreviations: "Give it to me." is no Maine.
_WORDS = {"en": re.compile(r"\b(?:me|no|OK|ill|art|fed)\.[\"”’)]*\s+(?=[\"“‘(]?[A-Z])")}
# What ends a sentence without white space after it; a full stop inside a word doesn't.
_WIDE_STOPS = "。．！？｡」』）"


class Piece(NamedTuple):
    """What is translated at once: `text[start:end]`, a sentence, or a part of one (`is_part`)."""

    start: int
    end: int
    is_part: bool = False


def split_sentences(text: str, language: str) -> Iterator[Piece]:
    """Every sentence of every line, in order; none is empty or has anything aside at its ends.

    language: of the text, BCP 47.
    """
    start, end = trim(text, 0, len(text))
    if end - start <= MAX_WINDOW and is_plain_sentence(text[start:end]):
        yield Piece(start, end)
        return
    for start, end in _lines(text):
        start = _after(_BULLETS, text, start, min(end, start + MAX_WINDOW))
        yield from _trimmed(text, _sentences(text, start, end, language))


def is_plain_sentence(text: str) -> bool:
    """Whether a text is one sentence beyond doubt, with no layout and no address: most are."""
    return _PLAIN.fullmatch(text) is not None


def split_lines(text: str, language: str) -> Iterator[Piece]:
    """Every line as one piece, bullets and all; one longer than the window comes in parts."""
    for start, end in _lines(text):
        yield from _trimmed(text, _cut_to_windows(text, start, end, language))


def _lines(text: str) -> Iterator[tuple[int, int]]:
    return (line.span() for line in _LINE.finditer(text) if not line[0].isspace())


def _trimmed(text: str, pieces: Iterator[Piece]) -> Iterator[Piece]:
    for piece in pieces:
        start, end = trim(text, piece.start, piece.end)
        if start < end:
            yield Piece(start, end, piece.is_part)


def _cut_to_windows(text: str, start: int, end: int, language: str) -> Iterator[Piece]:
    start, end = trim(text, start, end)
    is_part = end - start > MAX_WINDOW
    while start < end:
        cut = _window_cut(text, start, language) if end - start > MAX_WINDOW else end
        yield Piece(start, cut, is_part)
        start = _after(_BLANK, text, cut, end)


def _sentences(text: str, start: int, end: int, language: str) -> Iterator[Piece]:
    is_rest = False
    while (start := _after(_BLANK, text, start, end)) < end:
        window = min(end, start + MAX_WINDOW)
        stops = [start + stop for stop in _stops(text[start:window], language)]
        if window < end:
            stops.pop()  # the last sentence may go on: the next window begins with it
        if not stops:
            cut = _window_cut(text, start, language)
            yield Piece(start, cut, True)
            start, is_rest = cut, True
        for stop in stops:
            yield Piece(start, stop, is_rest)
            start, is_rest = stop, False


def _after(pattern: re.Pattern[str], text: str, start: int, end: int) -> int:
    """Where what matches at `start` ends; `start` if nothing does."""
    match = pattern.match(text, start, end)
    return match.end() if match else start


def _window_cut(text: str, start: int, language: str) -> int:
    bounds = start + MAX_WINDOW // 2, start + MAX_WINDOW
    return best_cut(text, bounds, bounds[1], language)


def _stops(text: str, language: str) -> list[int]:
    """The end of every sentence, rising; the last is the end of the text."""
    reading, origins = _reading(text)
    language = language.partition("-")[0]
    stops = {sentence["end_index"] for sentence in get_sentence_boundaries(language, reading)}
    if words := _WORDS.get(language):
        stops.update(match.end() for match in words.finditer(reading))
    lasts = [(origins[stop - 1], origins[stop]) for stop in sorted(stops) if stop < len(origins)]
    inside = [stop for last, stop in lasts if text[last].isspace() or text[last] in _WIDE_STOPS]
    return [*inside, len(text)]


def _reading(text: str) -> tuple[str, Sequence[int]]:
    """The text as the splitter should read it, and where each of its characters comes from."""
    if text.isascii() and text.isprintable():
        return text, range(len(text))
    reading = text.translate(_READING)
    if not _UNSEEN.search(reading):
        return reading, range(len(text))
    seen = [index for index, character in enumerate(reading) if not _UNSEEN.match(character)]
    return "".join(reading[index] for index in seen), seen
