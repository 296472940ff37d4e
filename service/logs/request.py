"""One rpc: its id, what became known of it, and the line that says how it ended."""

import itertools
import logging
import re
import zlib
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from random import Random

from service.logs.repeats import Repeats

_LOG = logging.getLogger("service.requests")
# Printable ASCII without the space: it can be sent back in metadata, and can't forge a line.
_SANE_ID = re.compile(r"[!-~]{1,128}")
# Ids are to differ, not to be secret. To ask the system each time would hand the GIL to decoding
# threads, and who is refused would wait for it to come back.
_RANDOM = Random()
_MAX_LOGGED_CHARACTERS = 2000
_MAX_REASON_LENGTH = 500
# What a server answers without any work, and so by the hundred: by its own reasons, not by what it
# was sent.
_TURNED_AWAY = frozenset(["RESOURCE_EXHAUSTED", "UNAVAILABLE", "UNAUTHENTICATED"])


def request_id(metadata: Iterable[tuple[str, str | bytes]]) -> str:
    """The caller's own `x-request-id` if it is sane, else a new one."""
    for key, value in metadata:
        if key == "x-request-id" and isinstance(value, str) and _SANE_ID.fullmatch(value):
            return value
    return _new_id()


def _new_id() -> str:
    return f"{_RANDOM.getrandbits(128):032x}"


@dataclass(slots=True)
class RequestRecord:
    """What is known of one rpc: filled in by those who serve it, logged and traced at its end.

    contents: the texts that were sent; of a stream the first ones.
    num_texts, num_characters: of all texts of a stream; num_failed of them got no translation.
    models: name@version of those who translated them.
    Other counts are None where nobody has counted. trace_id: of a trace that is kept.
    """

    request_id: str = field(default_factory=_new_id)
    contents: Sequence[str] = ()
    models: Sequence[str] = ()
    num_sentences: int | None = None
    num_source_tokens: int | None = None
    num_target_tokens: int | None = None
    trace_id: str | None = None
    num_texts: int = 0
    num_characters: int = 0
    num_failed: int = 0

    def begin(self) -> None:
        """Makes this the record of the running task, and of the threads that it starts."""
        # Never taken back: an rpc has a task of its own.
        _CURRENT.set(self)

    def add_text(self, text: str) -> None:
        """A stream goes on with another text."""
        if self.num_texts + self.num_characters < _MAX_LOGGED_CHARACTERS:
            self.contents = [*self.contents, text[:_MAX_LOGGED_CHARACTERS]]
        self.num_texts += 1
        self.num_characters += len(text)

    def facts(self) -> dict[str, str | int]:
        """What is known of its work, by name of a field in logs and an attribute in traces."""
        known: dict[str, str | int | None] = {
            "model": ",".join(self.models) or None,
            "texts": self.num_texts or len(self.contents) or None,
            "characters": self.num_characters or sum(map(len, self.contents)) or None,
            "failed_texts": self.num_failed or None,
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

    Of those that were turned away for one reason, `failed` has one a second, with the number of
    those `left_out` since the one before; `all` has each.
    rate: share of the successes that `all` logs, chosen by request id: alike on every server that
    a request passes. Who was called from where is in no line.
    """

    which: str = "failed"
    rate: float = 1.0
    log_texts: bool = False
    repeats: Repeats = field(default_factory=Repeats)

    def ended(
        self, record: RequestRecord, method: str, code: str, seconds: float, reason: str = ""
    ) -> None:
        """Logs the end of an rpc if it is to be logged; `reason` is what its caller was told."""
        left_out = self._left_out(record, method, code, reason)
        if left_out is None:
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
        if left_out:
            fields["left_out"] = left_out
        if self.log_texts:
            fields["contents"] = _cut(record.contents)
        level = logging.INFO if code == "OK" else logging.WARNING
        _LOG.log(level, "rpc ended", extra={"fields": fields})

    def _left_out(self, record: RequestRecord, method: str, code: str, reason: str) -> int | None:
        """None if the rpc gets no line, else how many like it got none since the last that did."""
        if self.which == "off" or (code == "OK" and not self._is_chosen(record)):
            return None
        if self.which == "all" or code not in _TURNED_AWAY:
            return 0
        return self.repeats.told(f"{method} {code} {reason}")

    def _is_chosen(self, record: RequestRecord) -> bool:
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
