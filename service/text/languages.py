"""Language tags of BCP 47: parsed or refused, in canonical case, and how well a served one fits.

    parse "EN-us"  ->  en-US           parse "english", "en_US"  ->  ValueError

    wanted zh-Hant-TW     served zh-Hant 2, zh 1      lookup, RFC 4647 section 3.4
    wanted zh             served zh 1, zh-Hans 0      what is served may say more, section 3.3.1
    wanted zh-Hant        served zh-Hans: not at all

A tag is what the syntax of RFC 5646 section 2.1 allows, without the irregular ones of before 2006.
No registry is asked whether it means something: it is compared with what is served, nothing else.
"""

import re
from dataclasses import dataclass

_TAG = re.compile(
    r"[a-z]{2,3}(-[a-z]{3}){0,3}"  # language; longer ones are reserved
    r"(-[a-z]{4})?"  # script
    r"(-([a-z]{2}|[0-9]{3}))?"  # region
    r"(-([a-z0-9]{5,8}|[0-9][a-z0-9]{3}))*"  # variants
    r"(-[a-wyz0-9](-[a-z0-9]{2,8})+)*"  # extensions
    r"(-x(-[a-z0-9]{1,8})+)?",  # private use
    re.ASCII | re.IGNORECASE,
)
_CASES = {2: str.upper, 4: str.capitalize}  # regions, scripts
_MAX_QUOTED = 40


@dataclass(frozen=True, slots=True)
class LanguageTag:
    """A well-formed tag: its subtags in canonical case (RFC 5646 section 2.1.1)."""

    subtags: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> "LanguageTag":
        """Raises ValueError, naming what was given."""
        if not _TAG.fullmatch(text):
            quoted = repr(text[:_MAX_QUOTED]) + "…" * (len(text) > _MAX_QUOTED)
            raise ValueError(f"{quoted} is no BCP 47 tag such as 'en' or 'pt-BR'")
        return cls(tuple(_canonical(text.lower().split("-"))))

    @property
    def language(self) -> str:
        """The first subtag, which names the language: `pt` of `pt-BR`."""
        return self.subtags[0]

    def closeness(self, served: "LanguageTag") -> int | None:
        """How many subtags of this one a served tag fulfils; None if it is no answer to it."""
        common = min(len(self.subtags), len(served.subtags))
        if self.subtags[:common] != served.subtags[:common]:
            return None
        return 0 if len(served.subtags) > common else common

    def __str__(self) -> str:
        return "-".join(self.subtags)


def _canonical(subtags: list[str]) -> list[str]:
    """Only the language and what follows a single letter or digit have no capitals."""
    end = next((i for i, subtag in enumerate(subtags) if len(subtag) == 1), len(subtags))
    cased = [_CASES.get(len(subtag), str.lower)(subtag) for subtag in subtags[1:end]]
    return [subtags[0], *cased, *subtags[end:]]
