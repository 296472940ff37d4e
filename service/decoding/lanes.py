"""A sentence in flight: what every step needs of it, and what only its beginning and its end do."""

from collections.abc import Hashable, Sequence
from typing import Any, Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

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
        ("bound_divisor", np.float64),  # of a hypothesis as long as the limit
        ("threshold", np.float64),  # see service.decoding.stopping
    ],
    align=True,
)
_OPAQUE: Final = np.dtype((np.void, LANE.itemsize))


class Lanes:
    """The lanes of the live sentences, and what is true of them until others join or leave.

    Every field is an attribute, (sentences,), through which the lanes are written as well.
    """

    def __init__(self) -> None:
        self._records = np.empty(0, LANE)  # longer than the sentences: it grows by doubling
        self._show(0)
        self._see()
        self._steps_left = 0  # at least so many until the first sentence is at its limit

    def __len__(self) -> int:
        return len(self.slot)

    def prepare(self, records: Sequence[tuple[Any, ...]]) -> None:
        """Write lanes behind the live ones, for `extend` to take in."""
        count = len(self) + len(records)
        if count > len(self._records):
            self._records = np.resize(self._records, 2 * count)
            self._show(len(self))  # or what is written until `extend` would be lost
        self._records[len(self) : count] = records

    def extend(self, count: int) -> None:
        """The next `count` lanes are live from now on."""
        self._show(len(self) + count)
        self._see()
        self._steps_left = 0

    def shrink(self, count: int, holes: NDArray[np.intp], movers: NDArray[np.intp]) -> None:
        """Keep the first `count` lanes, after lane `movers[i]` has taken the place `holes[i]`."""
        opaque = self._records.view(_OPAQUE)  # which numpy moves much faster than fields
        opaque[holes] = opaque[movers]
        self._show(count)
        if self.are_filtered or self.want_attention:  # else who leaves can't change that
            self._see()

    def advance(self) -> None:
        """Every sentence has one more token."""
        self.position += 1
        self._steps_left -= 1

    def at_limit(self) -> NDArray[np.bool_] | None:
        """Whose next token is the last one allowed; None if nobody's is."""
        if self._steps_left > 1:
            return None
        self._steps_left = min((self.limit - self.position).tolist())
        at_limit: NDArray[np.bool_] = self.position + 1 >= self.limit
        return at_limit

    def _show(self, count: int) -> None:
        lanes = self._records[:count]
        self.slot: NDArray[np.intp] = lanes["slot"]
        self.position: NDArray[np.int32] = lanes["position"]
        self.limit: NDArray[np.int32] = lanes["limit"]
        self.attention: NDArray[np.bool_] = lanes["attention"]
        self.attention_heads: NDArray[np.bool_] = lanes["attention_heads"]
        self.is_covered: NDArray[np.bool_] = lanes["is_covered"]
        self.is_filtered: NDArray[np.bool_] = lanes["is_filtered"]
        self.needs_everything: NDArray[np.bool_] = lanes["needs_everything"]
        self.bound_divisor: NDArray[np.float64] = lanes["bound_divisor"]
        self.threshold: NDArray[np.float64] = lanes["threshold"]

    def _see(self) -> None:
        (self.covered,) = self.is_covered.nonzero()
        self.are_filtered = bool(np.count_nonzero(self.is_filtered))
        self.want_attention = bool(len(self.covered) or np.count_nonzero(self.attention))
        self.want_heads = bool(np.count_nonzero(self.attention_heads))


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
            options.length_divisor(self.limit),
            -np.inf,
        )
