"""What the engine tells about its work, to whoever counts it."""

from typing import Protocol

from service.decoding import FinishReason
from service.errors import Refusal


class Observer(Protocol):
    """Called on worker threads, except `refused`; must be quick and must not raise.

    Every accepted sentence ends in exactly one of finished, cancelled, expired and failed; only one
    whose options leave no translation, which is its caller's business, in none.
    """

    def queued(self, seconds: float) -> None:
        """A sentence joined a batch after it waited that long."""

    def encoded(self, tokens: int, seconds: float) -> None:
        """Newcomers were encoded together: so many source tokens, without padding."""

    def stepped(self, rows: int, seconds: float) -> None:
        """A batch decoded one token in each of its rows."""

    def first_stepped(self, seconds: float) -> None:
        """A sentence's first token was decoded, so long after it came."""

    def finished(self, reason: FinishReason, tokens: int, seconds: float) -> None:
        """A sentence was answered, so long after it came; target tokens of its best hypothesis."""

    def cancelled(self) -> None:
        """A sentence's caller left before its deadline."""

    def expired(self) -> None:
        """A sentence's deadline passed, whoever saw it first."""

    def failed(self) -> None:
        """A sentence was lost to a fault, or to a stop that did not wait for it."""

    def refused(self, sentences: int, reason: Refusal) -> None:
        """A request began with so many sentences, and none of them was accepted."""

    def worker_restarted(self) -> None:
        """A worker died of a fault outside a step, and another one runs in its place."""


class SilentObserver:
    """Tells nobody."""

    def queued(self, seconds: float) -> None:
        pass

    def encoded(self, tokens: int, seconds: float) -> None:
        pass

    def stepped(self, rows: int, seconds: float) -> None:
        pass

    def first_stepped(self, seconds: float) -> None:
        pass

    def finished(self, reason: FinishReason, tokens: int, seconds: float) -> None:
        pass

    def cancelled(self) -> None:
        pass

    def expired(self) -> None:
        pass

    def failed(self) -> None:
        pass

    def refused(self, sentences: int, reason: Refusal) -> None:
        pass

    def worker_restarted(self) -> None:
        pass
