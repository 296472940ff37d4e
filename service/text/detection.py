"""Which of a few languages a text is in.

Uses py3langid (naive Bayes over byte n-grams; Lui and Baldwin 2012): of 2,000 Tatoeba sentences
in English or French it told every one. It is imported, and its 100 MB loaded, when it is first
asked, which takes a second or two; then a sentence takes a fifth of a millisecond.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from threading import Lock
from typing import Any

from service.errors import InvalidArgument

# More says nothing new, and would let a long text cost seconds.
_MAX_CHARACTERS = 2000
# Of languages that have several codes, the one that py3langid knows.
_SYNONYMS = {"nb": "no", "fil": "tl", "cmn": "zh"}


@dataclass(frozen=True, slots=True)
class Detection:
    """language: one of those asked about; confidence: its probability among them, 0 to 1."""

    language: str
    confidence: float


class LanguageDetector:
    """Tells languages apart. Thread-safe; loads nothing until it is asked."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._whole: Any = None
        self._identifiers: dict[frozenset[str], Any] = {}

    def detect_all(self, texts: Sequence[str], languages: Sequence[str]) -> list[Detection]:
        """The language of each text, by itself; what says nothing (digits) is in the first one.

        languages: two or more primary subtags of BCP 47, `en`. Raises InvalidArgument if one of
        them can't be detected.
        """
        identifier = self._identifier(languages)
        return [_detect(identifier, text[:_MAX_CHARACTERS], languages) for text in texts]

    def _identifier(self, languages: Sequence[str]) -> Any:
        known = frozenset(map(_known, languages))
        with self._lock:
            if self._whole is None:
                self._whole = _load()
            unknown = sorted(known.difference(self._whole.labels))
            if unknown:
                raise InvalidArgument(
                    f"source_language_code is empty, and {', '.join(unknown)} can't be told from "
                    "the other source languages; set it"
                )
            if known not in self._identifiers:
                self._identifiers[known] = identifier = copy(self._whole)
                identifier.set_languages(known)
            return self._identifiers[known]


def _load() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def _detect(identifier: Any, text: str, languages: Sequence[str]) -> Detection:
    probabilities: dict[str, float] = dict(identifier.rank(text))
    language = max(languages, key=lambda language: probabilities[_known(language)])
    return Detection(language, probabilities[_known(language)])


def _known(language: str) -> str:
    return _SYNONYMS.get(language, language)
