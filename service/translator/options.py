"""What a caller may ask of the text around the model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from service.text.protect import Protection
from service.text.rewriting import Span


class LongSentences(Enum):
    """What becomes of a sentence with more tokens than the model takes, or takes well."""

    SPLIT = "split"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Extras:
    """What to return of every hypothesis beside its text, scores and attention.

    alignment     which word comes from which; needs attention, and doesn't return it
    token_scores  the log-probability of every token
    """

    alignment: bool = False
    token_scores: bool = False


NO_EXTRAS = Extras()


@dataclass(frozen=True, slots=True)
class TextOptions:
    """How texts are taken apart and put together.

    split_sentences  whether the sentences of a line are translated each by itself, as models are
                     trained; else a line is one unit
    long_sentences   what is longer than the model translates well is translated in parts; or whole,
                     and refused above the model's limit
    no_break_spaces  whether French output gets them: see `service.text.typography`
    protection       what must not change in every text
    protected_spans  what must not change besides, by the index of the text
    """

    split_sentences: bool = True
    long_sentences: LongSentences = LongSentences.SPLIT
    no_break_spaces: bool = False
    protection: Protection = field(default_factory=Protection)
    protected_spans: Mapping[int, Sequence[Span]] = field(default_factory=dict)

    @property
    def num_items(self) -> int:
        """Terms and spans: each takes a few microseconds to look for."""
        return len(self.protection.glossary) + sum(map(len, self.protected_spans.values()))

    def for_texts(self, indices: Sequence[int]) -> "TextOptions":
        """The same for some of the texts, in that order."""
        if not self.protected_spans:
            return self
        spans = {
            new: self.protected_spans[old]
            for new, old in enumerate(indices)
            if old in self.protected_spans
        }
        return replace(self, protected_spans=spans)
