"""The white space around a segment, and whether anything in it has to be translated."""

import re
from dataclasses import dataclass

# White space (the last of Unicode is U+3000), and what takes no room and is part of no word:
# zero-width space, word joiner, byte-order mark.
LAYOUT_CHARACTERS = "".join(filter(str.isspace, map(chr, range(0x3001)))) + "\u200b\u2060\ufeff"

_URL = r"(?:[a-z][a-z0-9+.-]*://|www\.|mailto:).+"
_EMAIL = r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
_ADDRESS = re.compile(f"{_URL}|{_EMAIL}", re.IGNORECASE)
_AROUND_ADDRESS = "()[]{}<>«»“”‘’\"'.,;:!?…"


@dataclass(frozen=True, slots=True)
class Layout:
    """A segment is `prefix + core + suffix`; only `core` is translated, the rest is put back."""

    prefix: str
    core: str
    suffix: str


def split_layout(text: str) -> Layout:
    """Split `LAYOUT_CHARACTERS` off both ends; a blank text is all prefix."""
    rest = text.lstrip(LAYOUT_CHARACTERS)
    core = rest.rstrip(LAYOUT_CHARACTERS)
    return Layout(text[: len(text) - len(rest)], core, rest[len(core) :])


def is_translatable(core: str) -> bool:
    """Whether any word has a letter and is no URL or e-mail address.

    If not, the text passes through as it is: digits, punctuation, symbols and emoji in any mix. A
    host name alone (`example.com`) counts as a word.
    """
    return any(any(map(str.isalpha, word)) and not _is_address(word) for word in core.split())


def _is_address(word: str) -> bool:
    return _ADDRESS.fullmatch(word.strip(_AROUND_ADDRESS)) is not None
