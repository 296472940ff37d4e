"""What a line holds: the text to translate, and the line that comes out for it.

    text    the line is the text
    TSV     a column is; its translation comes behind the last one, or takes its place
    JSONL   a field of the object is; its translation is another one, with what was asked for beside

A line that can't be translated comes out too, so that what is at a place stays there: empty as
text, with an empty translation as TSV, with a field `error` as JSONL.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, Protocol

from service.client.bulk.details import kept, sentences
from service.pb import translation_pb2 as pb

ERROR_FIELD = "error"
DETAILS_FIELD = "sentences"
KEPT_FIELD = "kept"
# Some programs begin files with it; it is no JSON.
_BYTE_ORDER_MARK = "\ufeff"
# What a translation must not hold of it, if a term's translation does: the line would be two.
_ENDS_OF_LINES = {ord("\n"): " "}
_ENDS_OF_CELLS = {**_ENDS_OF_LINES, ord("\t"): " "}


class LineFault(Exception):
    """A line can't be translated; the message says why, and nothing of its text.

    record: what was read of the line, if it was an object. may_pass: whether another time it may
    come right.
    """

    def __init__(
        self, message: str, record: Mapping[str, Any] | None = None, *, may_pass: bool = False
    ) -> None:
        super().__init__(message)
        self.record = record or {}
        self.may_pass = may_pass


class Segment(Protocol):
    """A line that was read: its text, and what it becomes."""

    @property
    def text(self) -> str: ...

    def translated(self, translation: pb.Translation) -> str: ...

    def failed(self, fault: LineFault) -> str: ...


class Format(Protocol):
    """How a line holds a text. `settings` are all that changes what comes out, by name."""

    @property
    def settings(self) -> Mapping[str, object]: ...

    def segment(self, line: str) -> Segment:
        """Raises LineFault."""

    def unread(self, fault: LineFault) -> str:
        """What comes out for a line that can't be read."""


@dataclass(frozen=True, slots=True)
class _TextSegment:
    text: str

    def translated(self, translation: pb.Translation) -> str:
        return translation.translated_text.translate(_ENDS_OF_LINES)

    def failed(self, fault: LineFault) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class TextFormat:
    """A line is a text."""

    settings: ClassVar[Mapping[str, object]] = {"format": "text"}

    def segment(self, line: str) -> Segment:
        return _TextSegment(line)

    def unread(self, fault: LineFault) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class _TsvSegment:
    format: "TsvFormat"
    cells: tuple[str, ...]

    @property
    def text(self) -> str:
        return self.cells[self.format.column - 1]

    def translated(self, translation: pb.Translation) -> str:
        return self._with(translation.translated_text.translate(_ENDS_OF_CELLS))

    def failed(self, fault: LineFault) -> str:
        return self._with("")

    def _with(self, cell: str) -> str:
        cells = [*self.cells]
        if self.format.replace:
            cells[self.format.column - 1] = cell
        else:
            cells.append(cell)
        return "\t".join(cells)


@dataclass(frozen=True, slots=True)
class TsvFormat:
    """Cells between tabs, none quoted. column: whose text is translated, from 1.

    replace: the translation takes its place, rather than that behind the last cell.
    """

    column: int = 1
    replace: bool = False

    @property
    def settings(self) -> Mapping[str, object]:
        return {"format": "tsv", "column": self.column, "replace": self.replace}

    def segment(self, line: str) -> Segment:
        cells = tuple(line.split("\t"))
        if len(cells) < self.column:
            raise LineFault(f"no column {self.column}, there are {len(cells)}")
        return _TsvSegment(self, cells)

    def unread(self, fault: LineFault) -> str:
        return ""


@dataclass(frozen=True, slots=True)
class _JsonSegment:
    format: "JsonFormat"
    record: Mapping[str, Any]
    text: str

    def translated(self, translation: pb.Translation) -> str:
        added: dict[str, Any] = {self.format.into: translation.translated_text}
        if self.format.details:
            added[DETAILS_FIELD] = sentences(translation)
            if translation.kept_spans:
                added[KEPT_FIELD] = kept(translation)
        return _dumped({**self._record, **added})

    def failed(self, fault: LineFault) -> str:
        return _dumped({**self._record, ERROR_FIELD: str(fault)})

    @property
    def _record(self) -> Mapping[str, Any]:
        """The object without what an earlier run said of it, which holds no longer.

        Never without the text, whatever its field is called.
        """
        said = {ERROR_FIELD, DETAILS_FIELD, KEPT_FIELD} - {self.format.field}
        return {name: value for name, value in self.record.items() if name not in said}


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """A JSON object. field: what is translated in it. into: what the translation is called.

    details: whether the sentences with their scores, and what was asked for besides, come with it.
    """

    field: str = "text"
    into: str = "translation"
    details: bool = False

    @property
    def settings(self) -> Mapping[str, object]:
        return {"format": "jsonl", "field": self.field, "into": self.into, "scores": self.details}

    def segment(self, line: str) -> Segment:
        record = _loaded(line)
        text = record.get(self.field)
        if not isinstance(text, str):
            raise LineFault(f"no text in the field {self.field!r}", record)
        return _JsonSegment(self, record, text)

    def unread(self, fault: LineFault) -> str:
        return _dumped({**fault.record, ERROR_FIELD: str(fault)})


def _loaded(line: str) -> Mapping[str, Any]:
    """The object of a line, one that `_dumped` takes. Raises LineFault."""
    try:
        record = json.loads(line.removeprefix(_BYTE_ORDER_MARK), parse_constant=_refuse)
        _dumped(record).encode()
    except UnicodeEncodeError as error:
        raise LineFault("a lone surrogate, which is not Unicode") from error
    except (ValueError, RecursionError) as error:
        raise LineFault("not JSON") from error
    if not isinstance(record, dict):
        raise LineFault("not a JSON object")
    return record


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _dumped(record: object) -> str:
    return json.dumps(record, ensure_ascii=False, allow_nan=False)
