"""Every way the service can fail, one class per answer a client or an operator can act on.

    TranslationError
    ├── InvalidArgument     INVALID_ARGUMENT     the request can never succeed as it is
    ├── UnknownModel        NOT_FOUND            no such model, or a language pair nobody serves
    ├── Unauthenticated     UNAUTHENTICATED      the server wants a token, or another one
    ├── QueueFull           RESOURCE_EXHAUSTED   no room, or no time before the deadline; try later
    ├── DeadlineExceeded    DEADLINE_EXCEEDED    the answer would have come too late
    ├── Cancelled           CANCELLED            the caller left
    ├── Unavailable         UNAVAILABLE          loading, draining or broken; try another server
    ├── WorkerFailed        INTERNAL             our fault; the log has the details
    └── StartupError        FAILED_PRECONDITION  the server must not start
        ├── BundleError     a model directory is not what its manifest says
        └── ConfigError     the command line contradicts itself

`str(error)` is what the client sees: the thing, the value, the limit and the way out, and nothing
of the text that was to be translated. Statuses are the names of gRPC's codes, as strings: only the
border of the service knows gRPC.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import ClassVar


class TranslationError(Exception):
    """Base of all expected failures; anything else is a bug and is answered as INTERNAL."""

    status: ClassVar[str] = "INTERNAL"


class InvalidArgument(TranslationError):
    """The request is malformed, contradictory or over a limit; repeating it does not help."""

    status = "INVALID_ARGUMENT"


class UnknownModel(TranslationError):
    """No such model, or none for that pair of languages; the message lists what is served."""

    status = "NOT_FOUND"


class Unauthenticated(TranslationError):
    """The caller brought no token that the server knows; only a client meets this one."""

    status = "UNAUTHENTICATED"


class Refusal(StrEnum):
    """Why a request was not accepted, though another time it might be."""

    QUEUE_SENTENCES = "queue_sentences"
    QUEUE_TOKENS = "queue_tokens"
    DEADLINE = "deadline"  # it could not be met, by the estimate


class QueueFull(TranslationError):
    """Too much work is waiting, at all or for the deadline; try after `retry_after_seconds`.

    reason: None where only the server knows it.
    """

    status = "RESOURCE_EXHAUSTED"

    def __init__(
        self, message: str, retry_after_seconds: float, reason: Refusal | None = None
    ) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds
        self.reason = reason


class DeadlineExceeded(TranslationError):
    """The caller's deadline passed before the answer was complete."""

    status = "DEADLINE_EXCEEDED"


class Cancelled(TranslationError):
    """The caller gave up; its rows are freed at the next step."""

    status = "CANCELLED"


class Unavailable(TranslationError):
    """The server is loading, draining or stopped, or can't run the model; another may answer."""

    status = "UNAVAILABLE"


class WorkerFailed(TranslationError):
    """A worker could not finish the sentence; the traceback is in the log only."""

    status = "INTERNAL"


class StartupError(TranslationError):
    """The server must not start; `faults` holds every reason at once."""

    status = "FAILED_PRECONDITION"

    def __init__(self, subject: str, faults: Iterable[str]) -> None:
        self.subject = subject
        self.faults = tuple(faults)
        super().__init__(f"{subject}: " + "; ".join(self.faults))


class BundleError(StartupError):
    """A bundle is not what its manifest says, or the manifest is not one this version reads."""


class ConfigError(StartupError):
    """The server's options are out of range or contradict each other."""
