"""The choices that an option or a result has, where it is one of a few."""

from enum import Enum


class FinishReason(Enum):
    """Why a hypothesis ended."""

    END_OF_SENTENCE = "end_of_sentence"
    LENGTH_LIMIT = "length_limit"


class Stopping(Enum):
    """When a beam search ends: see `service.decoding.stopping`."""

    BEST = "best"
    FINISHED = "finished"


class LengthForm(Enum):
    """What a score is divided by: length ** alpha, or ((5 + length) / 6) ** alpha."""

    PLAIN = "plain"
    WU = "wu"
