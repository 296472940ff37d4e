"""A text on its way: the caller's, what is hidden of it, and the units that are decoded."""

from dataclasses import dataclass
from typing import NamedTuple

from service.text.protect import Masked, extent
from service.text.rewriting import Span


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """One entry of `contents`. masked: what is protected in it; None if nothing is."""

    index: int
    source: str
    masked: Masked | None

    @property
    def text(self) -> str:
        """What is taken apart."""
        return self.masked.text if self.masked else self.source


class Unit(NamedTuple):
    """A sentence of a document, or a part of one. A named tuple: there are many.

    start, end: its span in the document's text.
    text: what stands there, in the case that the model knows it in.
    hidden: what of `text` the model can't spell; None if it reads all.
    ids: what it reads, with EOS; none if the unit passes through.
    is_capitals: whether it is written in capitals.
    """

    document: Document
    start: int
    end: int
    text: str
    hidden: Masked | None
    ids: list[int]
    is_capitals: bool = False
    is_part: bool = False

    @property
    def read_text(self) -> str:
        """What the model reads."""
        return self.hidden.text if self.hidden else self.text

    def place(self, index: int) -> int:
        """Where in `text` the character is that stands at an index of `read_text`."""
        return self.hidden.source_span(index, index + 1)[0] if self.hidden else index

    @property
    def source_span(self) -> Span:
        """What its translation takes the place of in the caller's text."""
        if self.document.masked is None:
            return self.start, self.end
        if not self.ids:
            return self.document.masked.source_span(self.start, self.end)
        return extent(self.document.masked, (self.start, self.end))

    @property
    def is_plain(self) -> bool:
        """Whether what the model writes is the translation, with nothing to put back."""
        return self.document.masked is None and self.hidden is None and not self.is_capitals

    @property
    def num_tags(self) -> int:
        """How many tags are to be put around its words."""
        masked = self.document.masked
        return masked.num_tags((self.start, self.end)) if masked else 0

    @property
    def needs_attention(self) -> bool:
        """Whether something is to be put where the model looked for it."""
        both = self.document.masked, self.hidden
        return any([masked and (masked.parts or masked.tags) for masked in both])
