"""What a caller may ask of the search, validated when it is built."""

import math
from dataclasses import dataclass
from enum import Enum
from typing import Final

from service.errors import InvalidArgument

MAX_BEAM_SIZE: Final = 64
MAX_LENGTH_PENALTY: Final = 10.0
MAX_LENGTH_RATIO: Final = 100.0
MAX_PATIENCE: Final = 100.0
# A ratio of a very short source would cut good translations; no ratio limits below this many.
MIN_RATIO_LENGTH: Final = 16


class FinishReason(Enum):
    """Why a hypothesis ended."""

    END_OF_SENTENCE = "end_of_sentence"
    LENGTH_LIMIT = "length_limit"


class Stopping(Enum):
    """When a beam search ends: see `service.decoding.stopping`."""

    BEST = "best"
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class DecodingOptions:
    """How one sentence is decoded.

    beam_size         live beams, 1 to 64; 1 is greedy search
    num_hypotheses    translations to return, best first, at most `beam_size`
    length_penalty    alpha in score = log_prob / length ** alpha, 0 to 10; 0 is off; the length
                      counts target tokens with EOS (Wu et al. 2016, section 7, without its 5/6)
    max_length        target tokens with EOS at most
    max_length_ratio  target tokens per source token at most, but never fewer than 16; 0 to 100, 0
                      is off
    stopping          when the search ends
    patience          `Stopping.FINISHED` waits for round(beam_size * patience) hypotheses; above 0,
                      at most 100
    attention         whether hypotheses carry their attention
    shortlist         choose from the words that the source is likely to become, and from common
                      ones, where the model knows them; log-probabilities are then among these
                      (Jean et al. 2015, section 3.2)

    Raises InvalidArgument for a value out of its range and for options that contradict each other.
    """

    beam_size: int = 1
    num_hypotheses: int = 1
    length_penalty: float = 1.0
    max_length: int = 256
    max_length_ratio: float = 3.0
    stopping: Stopping = Stopping.BEST
    patience: float = 1.0
    attention: bool = False
    shortlist: bool = True

    def __post_init__(self) -> None:
        _check_range("beam_size", self.beam_size, 1, MAX_BEAM_SIZE)
        _check_range("num_hypotheses", self.num_hypotheses, 1, MAX_BEAM_SIZE)
        _check_range("length_penalty", self.length_penalty, 0, MAX_LENGTH_PENALTY)
        _check_range("max_length", self.max_length, 1, math.inf)
        _check_range("max_length_ratio", self.max_length_ratio, 0, MAX_LENGTH_RATIO)
        if not 0 < self.patience <= MAX_PATIENCE:
            limit = f"positive and at most {MAX_PATIENCE:g}"
            raise InvalidArgument(f"patience is {self.patience}; it must be {limit}")
        self._check_against_each_other()

    @property
    def patience_count(self) -> int:
        """Hypotheses that `Stopping.FINISHED` waits for; halves round up, as in ctranslate2."""
        return math.floor(self.beam_size * self.patience + 0.5)

    def length_limit(self, source_length: int) -> int:
        """Target tokens with EOS that a source of `source_length` tokens with EOS may get."""
        if self.max_length_ratio == 0:
            return self.max_length
        by_ratio = max(MIN_RATIO_LENGTH, self.max_length_ratio * source_length)
        return math.ceil(min(self.max_length, by_ratio))

    def _check_against_each_other(self) -> None:
        if self.num_hypotheses > self.beam_size:
            raise InvalidArgument(
                f"num_hypotheses is {self.num_hypotheses} but beam_size is {self.beam_size}; "
                "a beam yields at most beam_size hypotheses: raise beam_size or ask for fewer"
            )
        if self.stopping is Stopping.BEST and self.patience != 1:
            raise InvalidArgument(
                f"patience is {self.patience} but stopping is BEST, which has no patience; "
                "set stopping to FINISHED or leave patience at 1"
            )
        if self.stopping is Stopping.FINISHED and self.num_hypotheses > self.patience_count:
            raise InvalidArgument(
                f"num_hypotheses is {self.num_hypotheses} but patience {self.patience} stops at "
                f"{self.patience_count} of beam_size {self.beam_size}; "
                "raise patience or ask for fewer"
            )


def _check_range(field: str, value: float, low: float, high: float) -> None:
    # Written so that NaN, which compares false with everything, is refused as well.
    if not (low <= value <= high and math.isfinite(value)):
        limit = f"from {low} to {high:g}" if math.isfinite(high) else f"at least {low} and finite"
        raise InvalidArgument(f"{field} is {value}; it must be {limit}")
