"""What one request may ask, whatever the model: the operator's limits, checked and shown."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from service.config import ServerConfig
from service.decoding import MAX_BEAM_SIZE
from service.errors import DeadlineExceeded, InvalidArgument
from service.pb import translation_pb2 as pb


@dataclass(frozen=True, slots=True)
class RequestLimits:
    """Fields of the configuration, with its units; max_deadline_seconds 0 is none."""

    max_contents: int
    max_content_characters: int
    max_characters: int
    max_message_bytes: int
    max_rows: int
    default_deadline_seconds: float
    max_deadline_seconds: float

    @classmethod
    def of(cls, config: ServerConfig) -> "RequestLimits":
        return cls(
            max_contents=config.max_contents,
            max_content_characters=config.max_content_characters,
            max_characters=config.max_characters,
            max_message_bytes=config.max_message_bytes,
            max_rows=config.max_rows,
            default_deadline_seconds=config.default_deadline_seconds,
            max_deadline_seconds=config.max_deadline_seconds,
        )

    def deadline(self, remaining: float | None) -> float:
        """When to give up, on the monotonic clock, with so many seconds left; None is no deadline.

        Raises DeadlineExceeded if there is no time left.
        """
        if remaining is None:
            remaining = self.default_deadline_seconds
        elif remaining <= 0:
            raise DeadlineExceeded("the deadline had passed when the request arrived")
        if self.max_deadline_seconds:
            remaining = min(remaining, self.max_deadline_seconds)
        return time.monotonic() + remaining

    def check_contents(self, contents: Sequence[str], field: str = "contents") -> None:
        """Raises InvalidArgument, naming the limit, for texts that are too many or too long.

        field: of the request, which has them.
        """
        if (count := len(contents)) == 0:
            raise InvalidArgument(f"{field} is empty; send at least one text")
        if count > (limit := self.max_contents):
            raise InvalidArgument(
                f"{field} has {count} texts, the limit is {limit}; send several requests"
            )
        lengths = [len(content) for content in contents]
        if (longest := max(lengths)) > (limit := self.max_content_characters):
            raise InvalidArgument(
                f"{field}[{lengths.index(longest)}] has {longest} characters, the limit is "
                f"{limit}; send it in parts"
            )
        if (total := sum(lengths)) > (limit := self.max_characters):
            raise InvalidArgument(
                f"{field} has {total} characters, the limit is {limit}; send several requests"
            )

    def to_message(self) -> pb.Limits:
        return pb.Limits(
            max_contents=self.max_contents,
            max_content_characters=self.max_content_characters,
            max_characters=self.max_characters,
            max_message_bytes=self.max_message_bytes,
            max_beam_size=min(MAX_BEAM_SIZE, self.max_rows),
            default_deadline_seconds=self.default_deadline_seconds,
            max_deadline_seconds=self.max_deadline_seconds,
        )
