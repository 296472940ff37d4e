"""What stands around words and belongs to the caller: white space, invisible marks, pictures.

Owns which characters never need a model, and whether a text has anything that does.
"""

from collections.abc import Set

# White space (the last of Unicode is U+3000), and what shows nothing: controls, soft hyphen,
# zero-width spaces and non-joiner, marks of direction, invisible operators, byte-order mark.
LAYOUT_CHARACTERS = (
    "".join(c for c in map(chr, range(0xA0)) if c.isspace() or not c.isprintable())
    + "".join(filter(str.isspace, map(chr, range(0xA0, 0x3001))))
    + "\u00ad\u061c\u180e\u200b\u200c\u200e\u200f\ufeff"
    + "".join(map(chr, [*range(0x202A, 0x202F), *range(0x2060, 0x2070)]))
)
# Emoji and other pictures, with what modifies and joins them.
_FIRST_PICTURE = "\u2190"
_PICTURES = "".join(
    chr(code)
    for first, last in (
        (0x2190, 0x21FF),
        (0x2300, 0x23FF),
        (0x2500, 0x27BF),
        (0x2900, 0x297F),
        (0x2B00, 0x2BFF),
        (0x1F000, 0x1FAFF),
        (0xFE0E, 0xFE0F),
        (0xE0020, 0xE007F),
    )
    for code in range(first, last + 1)
)
# Sets: `str.strip` looks through all characters for each one of the text, some 10 us with these.
_LAYOUT = frozenset(LAYOUT_CHARACTERS)
_ASIDE = _LAYOUT | {"\u200d", "\u20e3", *_PICTURES}


def trim(text: str, start: int, end: int) -> tuple[int, int]:
    """The part of `text[start:end]` without what stands aside at its ends.

    Pictures stand aside from words; what has nothing else keeps them. Empty only if it is blank.

    >>> trim("  I know! 🙂\\n", 0, 12)
    (2, 9)
    """
    start, end = _stripped(text, start, end, _LAYOUT)
    if start < end and (text[start] >= _FIRST_PICTURE or text[end - 1] >= _FIRST_PICTURE):
        first, last = _stripped(text, start, end, _ASIDE)
        return (first, last) if first < last else (start, end)
    return start, end


def _stripped(text: str, start: int, end: int, characters: Set[str]) -> tuple[int, int]:
    while start < end and text[start] in characters:
        start += 1
    while start < end and text[end - 1] in characters:
        end -= 1
    return start, end


def is_translatable(core: str) -> bool:
    """Whether there is any letter: digits, punctuation, symbols and emoji pass through as they are.

    Addresses have letters too; `protect` hides them before.
    """
    return any(map(str.isalpha, core))
