"""One rpc: its id, what became known of it, and the line that says how it ended."""

import itertools
import logging
import re
import zlib
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from secrets import token_hex

_LOG = logging.getLogger("service.requests")
# Printable ASCII without the space: it can be sent back in metadata, and can't forge a line.
_SANE_ID = re.compile(r"[!-~]{1,128}")
_MAX_LOGGED_CHARACTERS = 2000
_MAX_REASON_LENGTH = 500


def request_id(metadata: Iterable[tuple[str, str | bytes]]) -> str:
    """The caller's own `x-request-id` if it is sane, else a new one."""
    for key, value in metadata:
        if key == "x-request-id" and isinstance(value, str) and _SANE_ID.fullmatch(value):
            return value
    return token_hex(16)


@dataclass(slots=True)
class RequestRecord:
    """What is known of one rpc: filled in by those who serve it, logged and traced at its end.

    contents: the texts that were sent. models: name@version of those who translated them.
    Counts are None where nobody has counted. trace_id: of a trace that is kept.
    """

    request_id: str = field(default_factory=lambda: token_hex(16))
    contents: Sequence[str] = ()
    models: Sequence[str] = ()
    num_sentences: int | None = None
    num_source_tokens: int | None = None
    num_target_tokens: int | None = None
    trace_id: str | None = None

    def begin(self) -> None:
        """Makes this the record of the running task, and of the threads that it starts."""
        # Never taken back: an rpc has a task of its own.
        _CURRENT.set(self)

    def facts(self) -> dict[str, str | int]:
        """What is known of its work, by name of a field in logs and an attribute in traces."""
        known: dict[str, str | int | None] = {
            "model": ",".join(self.models) or None,
            "texts": len(self.contents) or None,
            "characters": sum(map(len, self.contents)) or None,
            "sentences": self.num_sentences,
            "source_tokens": self.num_source_tokens,
            "target_tokens": self.num_target_tokens,
        }
        return {name: value for name, value in known.items() if value is not None}


_CURRENT: ContextVar[RequestRecord | None] = ContextVar("request", default=None)


def current_request() -> RequestRecord:
    """The record of the rpc that the running task serves; elsewhere one that nobody reads."""
    return _CURRENT.get() or RequestRecord()


def is_serving() -> bool:
    """Whether the running code serves an rpc."""
    return _CURRENT.get() is not None


def request_fields() -> dict[str, str]:
    """Whose rpc the running code serves; nothing where it serves none."""
    record = _CURRENT.get()
    if record is None:
        return {}
    trace = {"trace_id": record.trace_id} if record.trace_id else {}
    return {"request_id": record.request_id, **trace}


@dataclass(frozen=True, slots=True)
class RequestLog:
    """Which rpcs get their line: none (off), those that failed, or all.

    rate: share of the successes that `all` logs, chosen by request id: alike on every server that
    a request passes. Who was called from where is in no line.
    """

    which: str = "failed"
    rate: float = 1.0
    log_texts: bool = False

    def ended(
        self, record: RequestRecord, method: str, code: str, seconds: float, reason: str = ""
    ) -> None:
        """Logs the end of an rpc if it is to be logged; `reason` is what its caller was told."""
        if not self._is_wanted(record, code):
            return
        fields: dict[str, object] = {
            "request_id": record.request_id,
            "method": method,
            "code": code,
            "seconds": round(seconds, 6),
            **record.facts(),
        }
        if reason:
            fields["reason"] = reason[:_MAX_REASON_LENGTH]
        if self.log_texts:
            fields["contents"] = _cut(record.contents)
        level = logging.INFO if code == "OK" else logging.WARNING
        _LOG.log(level, "rpc ended", extra={"fields": fields})

    def _is_wanted(self, record: RequestRecord, code: str) -> bool:
        if self.which == "off" or code != "OK":
            return self.which != "off"
        return self.which == "all" and _share(record.request_id) < self.rate


def _share(request_id: str) -> float:
    """A number in [0, 1) that only depends on the id."""
    return zlib.crc32(request_id.encode()) / 2**32


def _cut(contents: Sequence[str]) -> list[str]:
    """The first texts, to a length that a line of a log can have."""
    lengths = itertools.accumulate(map(len, contents), initial=0)
    return [
        text[: _MAX_LOGGED_CHARACTERS - before]
        for text, before in zip(contents, lengths, strict=False)
        if before < _MAX_LOGGED_CHARACTERS
    ]
