"""What the service tells of an rpc, whoever collects it; and how it finds the rpc's span."""

from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

Metadata = Iterable[tuple[str, str | bytes]]


@dataclass(frozen=True, slots=True)
class SentenceTimes:
    """When one sentence passed the engine, in seconds of the monotonic clock."""

    enqueued: float
    joined: float
    encoded: float
    finished: float
    num_steps: int


class RpcSpan(Protocol):
    """One rpc from its start to `end`."""

    @property
    def trace_id(self) -> str | None:
        """32 hexadecimal digits; None if the trace is not kept."""

    def add(self, sentence: SentenceTimes) -> None:
        """A sentence of this rpc was finished; called on any thread."""

    def end(self, code: str, attributes: Mapping[str, str | int]) -> None:
        """The rpc ended with a gRPC code, spelled "OK" or "INVALID_ARGUMENT"."""


class Tracer(Protocol):
    """Opens spans; called on the event loop."""

    def begin(self, method: str, metadata: Metadata) -> RpcSpan:
        """An rpc such as "nmt.v1.TranslationService/Translate" came with such metadata.

        Its span is that of the running task from now on.
        """

    def close(self, timeout: float = 5.0) -> None:
        """Sends what was not sent yet, or gives it up after `timeout` seconds. Blocks."""


class SilentTracer:
    """Opens spans that nobody keeps."""

    def begin(self, method: str, metadata: Metadata) -> RpcSpan:
        return _SILENT_SPAN

    def close(self, timeout: float = 5.0) -> None:
        pass


class _SilentSpan:
    trace_id = None

    def add(self, sentence: SentenceTimes) -> None:
        pass

    def end(self, code: str, attributes: Mapping[str, str | int]) -> None:
        pass


_SILENT_SPAN = _SilentSpan()
_CURRENT: ContextVar[RpcSpan] = ContextVar("span", default=_SILENT_SPAN)


def enter(span: RpcSpan) -> None:
    """Makes this the span of the running task, and of the threads that it starts."""
    # Never taken back: an rpc has a task of its own.
    _CURRENT.set(span)


def current_trace_id() -> str | None:
    """The trace id of the rpc that the running task serves, if its trace is kept."""
    return _CURRENT.get().trace_id


def sentence_listener() -> Callable[[SentenceTimes], None] | None:
    """Who is to hear, on any thread, of each sentence that is finished for the running task's rpc.

    None where its trace is not kept: then nobody needs to look at the clock.
    """
    span = _CURRENT.get()
    return span.add if span.trace_id else None
