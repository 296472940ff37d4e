"""A text on its way: the caller's, what is hidden of it, and the units that are decoded."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from service.text.protect import Masked, Part, extent
from service.text.rewriting import Span
from service.text.unknown import Readable


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

    @property
    def hiding(self) -> Masked:
        """What is protected in it, also if that is nothing."""
        return self.masked or Masked.nothing(self.source)


class Unit(NamedTuple):
    """A sentence of a document, or a part of one. A named tuple: there are many.

    start, end: its span in the document's text.
    text: what stands there, in the case that the model knows it in.
    readable: what the model reads instead of `text` if it can't spell all of that.
    ids: what it reads, with EOS; none if the unit passes through.
    is_capitals: whether it is written in capitals.
    """

    document: Document
    start: int
    end: int
    text: str
    readable: Readable | None
    ids: list[int]
    is_capitals: bool = False
    is_part: bool = False

    @property
    def read_text(self) -> str:
        """What the model reads."""
        return self.readable.text if self.readable else self.text

    def place(self, index: int) -> int:
        """Where in `text` the character is that stands at an index of `read_text`."""
        return self.readable.sentence_span(index, index + 1)[0] if self.readable else index

    def document_span(self, start: int, end: int) -> Span:
        """The span in the document's text of a span of `read_text`."""
        if self.readable:
            start, end = self.readable.sentence_span(start, end)
        return start + self.start, end + self.start

    @property
    def parts(self) -> Sequence[Part]:
        """What the model saw a stand-in of, or must not translate as it likes."""
        if self.readable:
            return self.readable.parts
        masked = self.document.masked
        return masked.parts_of((self.start, self.end)) if masked else ()

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
        return self.document.masked is None and self.readable is None and not self.is_capitals

    @property
    def num_tags(self) -> int:
        """How many tags are to be put around its words."""
        masked = self.document.masked
        return masked.num_tags((self.start, self.end)) if masked else 0

    @property
    def needs_attention(self) -> bool:
        """Whether something is to be put where the model looked for it."""
        masked = self.document.masked
        if masked and (masked.parts or masked.tags):
            return True
        return self.readable is not None and bool(self.readable.parts)
