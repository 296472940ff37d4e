"""A sentence in flight: what every step needs of it, and what only its beginning and its end do."""

from collections.abc import Hashable
from typing import Any, Final, Generic, TypeVar

import numpy as np

from service.decoding.options import DecodingOptions
from service.decoding.stopping import Ranking

Key = TypeVar("Key", bound=Hashable)

# The numbers of a sentence that every step needs, one record per sentence in row order.
LANE: Final = np.dtype(
    [
        ("slot", np.intp),  # in the trellis, and in whatever else is kept of it
        ("position", np.int32),  # of the token that the next step predicts
        ("limit", np.int32),  # tokens with EOS
        ("attention", np.bool_),
        ("attention_heads", np.bool_),
        ("is_covered", np.bool_),  # has a coverage penalty
        ("is_filtered", np.bool_),
        ("needs_everything", np.bool_),
        ("length_penalty", np.float64),
        ("length_offset", np.int32),
        ("bound_divisor", np.float64),  # of a hypothesis as long as the limit
        ("threshold", np.float64),  # see service.decoding.stopping
    ],
    align=True,
)


class Sentence(Generic[Key]):
    """What only the beginning and the end of a sentence need."""

    def __init__(self, key: Key, source_length: int, options: DecodingOptions) -> None:
        self.key = key
        self.source_length = source_length
        self.options = options
        self.limit = options.length_limit(source_length)
        self.ranking = Ranking(options)

    def lane(self, slot: int) -> tuple[Any, ...]:
        """Its `LANE` before the first step."""
        options = self.options
        return (
            slot,
            0,
            self.limit,
            options.attention,
            options.attention_heads,
            options.coverage_penalty > 0,
            options.is_filtered,
            options.needs_everything,
            options.length_penalty,
            options.length_offset,
            options.length_divisor(self.limit),
            -np.inf,
        )
