"""What a stream owes its client, and whether it may owe more."""

import asyncio

from service.rpc.limits import RequestLimits


class Window:
    """Open while a stream owes less than one request may ask. For one event loop's thread.

    A segment is inside from when it is read until its answer has been taken by gRPC, which holds
    back what the client doesn't read. The one that is read while the window is open may be too much
    for it.
    """

    def __init__(self, limits: RequestLimits) -> None:
        self._limits = limits
        self._num_segments = self._num_characters = self._num_bytes = 0
        self._open = asyncio.Event()
        self._open.set()

    @property
    def is_open(self) -> bool:
        return self._open.is_set()

    async def wait_until_open(self) -> None:
        await self._open.wait()

    def enter(self, num_characters: int, num_bytes: int) -> None:
        """A segment was read, whose options and all take so many bytes."""
        self._add(1, num_characters, num_bytes)

    def answer(self, num_bytes: int) -> None:
        """A segment has its answer, which is to be written."""
        self._add(0, 0, num_bytes)

    def leave(self, num_characters: int, num_bytes: int) -> None:
        """The answer to a segment was written; num_bytes: of both."""
        self._add(-1, -num_characters, -num_bytes)

    def _add(self, num_segments: int, num_characters: int, num_bytes: int) -> None:
        limits = self._limits
        self._num_segments += num_segments
        self._num_characters += num_characters
        self._num_bytes += num_bytes
        if (
            self._num_segments < limits.max_contents
            and self._num_characters < limits.max_characters
            and self._num_bytes <= limits.max_message_bytes
        ):
            self._open.set()
        else:
            self._open.clear()
