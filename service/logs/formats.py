"""How a line looks: for people, or for a program that reads one JSON object a line.

The standard library does both in a page. A library for JSON lines would save none of it: the times
of RFC 3339, the request's id and tracebacks without texts are our own either way.
"""

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from types import TracebackType
from typing import TextIO, TypeAlias

from service.logs.request import is_serving, request_fields

_LOG = logging.getLogger("service")
_ExceptionInfo: TypeAlias = (
    tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
)


def set_up_logging(
    level: str, format: str, *, log_texts: bool = False, stream: TextIO | None = None
) -> None:
    """Sends messages from `level` on to a stream, stderr by default; format is text or json.

    Without `log_texts` the exceptions of code that serves a request are logged without their
    messages, which may quote what a user sent. Does nothing if somebody has set up logging already.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    formatter = JsonFormatter if format == "json" else TextFormatter
    handler.setFormatter(formatter(log_texts))
    logging.basicConfig(level=level.upper(), handlers=[handler])


def say(text: str, stream: TextIO, level: int = logging.INFO) -> None:
    """Says a line that is no message of the log; where that is JSON, it is one all the same."""
    handlers = logging.getLogger().handlers
    if any(isinstance(handler.formatter, JsonFormatter) for handler in handlers):
        _LOG.log(level, "%s", text)
    else:
        print(text, file=stream, flush=True)


class _Formatter(logging.Formatter):
    """Adds to a record what its line shows: `time`, `fields` and the exception."""

    def __init__(self, log_texts: bool) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")
        self._log_texts = log_texts

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """RFC 3339, in UTC."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        return time.replace("+00:00", "Z")

    def formatException(self, ei: _ExceptionInfo) -> str:
        if self._log_texts or not is_serving() or ei[1] is None:
            return super().formatException(ei)
        return _without_messages(ei[1])

    def fields(self, record: logging.LogRecord) -> dict[str, object]:
        """What is known besides the message: `extra={"fields": …}`, and whose request it is."""
        given: dict[str, object] = getattr(record, "fields", {})
        return {**request_fields(), **given}


class TextFormatter(_Formatter):
    """`2026-01-31T12:00:00.000Z INFO service.x: message key=value`, exceptions below."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        line = super().formatMessage(record)
        return line + "".join(
            f" {key}={_shown(value)}" for key, value in self.fields(record).items()
        )


class JsonFormatter(_Formatter):
    """One object a line: time, level, logger, message, the fields, and an exception's traceback."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": self.formatTime(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **self.fields(record),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def _shown(value: object) -> str:
    """A value as one word; quoted where it would be several, so that nobody can forge a line."""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    is_word = text.isprintable() and not set(text) & {" ", '"', "="} and text
    return text if is_word else json.dumps(text)


def _without_messages(error: BaseException) -> str:
    """The traceback of an exception and its causes, each named by its class only."""
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    before = f"{_without_messages(cause)}\n\nthen:\n\n" if cause else ""
    frames = "".join(traceback.format_tb(error.__traceback__))
    name = type(error).__qualname__
    return f"{before}Traceback (most recent call last):\n{frames}{name}: (--log-texts shows it)"
