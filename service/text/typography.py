"""What a typesetter adds to a translation: French no-break spaces.

    « Vraiment ? » : oui !   the spaces before ; ! ? become U+202F, narrow; those before : and
                             inside « » become U+00A0 (Imprimerie nationale, Lexique des règles)

Spaces are exchanged, never added or taken away, so no position changes.
"""

import re

_NARROW = re.compile(" (?=[;!?])")
_WIDE = re.compile(" (?=[:»])|(?<=«) ")


def with_no_break_spaces(text: str, language: str) -> str:
    """French text with no-break spaces; text in another language as it is."""
    if language.partition("-")[0] != "fr":
        return text
    return _WIDE.sub("\u00a0", _NARROW.sub("\u202f", text))
