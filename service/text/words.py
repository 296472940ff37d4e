"""What belongs together in writing: the parts of a text that nothing may be put into."""

import itertools
import unicodedata

from service.text.rewriting import Span

# Thai to Lao, Burmese, Khmer, kana and ideographs: scripts that put no space between words.
_SPACELESS = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30FF), (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF),
)  # fmt: skip
SPACELESS_CLASS = "".join(f"{chr(first)}-{chr(last)}" for first, last in _SPACELESS)
"""Those scripts, inside a character class of a regular expression."""
# What may directly follow a word.
SENTENCE_SIGNS = ".,;:!?…。，、；：！？"
_JOINER = "\u200d"
# Vowels of Thai and Lao that are no marks in Unicode but part of the letter before them.
_CLINGING_LETTERS = "\u0e33\u0eb3"


def is_spaceless(character: str) -> bool:
    """Whether it is of a script that puts no space between words."""
    return character >= "\u0e00" and any(a <= ord(character) <= b for a, b in _SPACELESS)


def is_word_character(character: str) -> bool:
    """Whether it is a letter, digit or accent of a script that puts spaces between words."""
    is_part = character.isalnum() or character == "_" or _is_mark(character)
    return is_part and not is_spaceless(character)


def joined(left: str, right: str) -> bool:
    """Whether two neighbouring characters are parts of one word, or of one visible sign."""
    if is_word_character(left) and is_word_character(right):
        return True
    if left == _JOINER or _clings(right):
        return True
    return _is_half_of_flag(left) and _is_half_of_flag(right)


def is_inside(text: str, position: int) -> bool:
    """Whether a position is inside of a word, or of a visible sign."""
    if not 0 < position < len(text) or text[position].isspace():
        return False
    return not _begins(text[position - 1], text[position])


def is_control(character: str) -> bool:
    """Whether it shows nothing and is no space: normalisation may remove it, and join words so."""
    if character.isascii() and character.isprintable():
        return False
    return unicodedata.category(character) in ("Cc", "Cf") and not character.isspace()


def words(text: str) -> list[Span]:
    """Return the spans of words and single signs in order, without the white space."""
    starts = [
        index
        for index, character in enumerate(text)
        if not character.isspace() and (index == 0 or _begins(text[index - 1], character))
    ]
    spans = []
    for start, limit in itertools.pairwise([*starts, len(text)]):
        spans.append((start, start + len(text[start:limit].rstrip())))
    return spans


def is_loose(text: str, left: int, right: int) -> bool:
    """Whether a word may be put between one that ends at `left` and the next, at `right`."""
    if left < right or text[right] in SENTENCE_SIGNS:
        return True
    return is_spaceless(text[left - 1]) or is_spaceless(text[right])


def _begins(previous: str, character: str) -> bool:
    # A modifier clings to a space as well, but spaces are no words: it stands for itself there.
    return previous.isspace() or not joined(previous, character)


def _clings(character: str) -> bool:
    """Whether it changes the character before it: accents, emoji modifiers, joiners."""
    if character.isascii():
        return False
    is_modifier = unicodedata.category(character) in ("Cf", "Sk")
    return is_modifier or _is_mark(character) or character in _CLINGING_LETTERS


def _is_half_of_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _is_mark(character: str) -> bool:
    return not character.isascii() and unicodedata.category(character).startswith("M")
