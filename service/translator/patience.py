"""How long work for a request is worth doing."""

import time

from service.errors import Cancelled, DeadlineExceeded


class Patience:
    """Lasts until the deadline, or until the caller leaves. Any thread may ask.

    deadline: seconds on the monotonic clock; None for ever.
    """

    def __init__(self, deadline: float | None) -> None:
        self._deadline = deadline
        self._is_over = False

    def end(self) -> None:
        """Nobody waits any more: what is still at work fails at its next check."""
        self._is_over = True

    def check(self) -> None:
        """Raises DeadlineExceeded, and Cancelled where nobody will hear of it."""
        if self._is_over:
            raise Cancelled("the caller has left")
        if self._deadline is not None and time.monotonic() >= self._deadline:
            raise DeadlineExceeded("the deadline passed while the texts were read")
