"""When the search for one sentence ends, and which of its hypotheses are the best.

The search stops for a sentence when none of its live beams can reach a score above the
*threshold*, a number that the rule derives from the hypotheses that ended so far: -inf means go
on, inf means enough. What a live beam can still reach is bounded by

    max over length of log_prob / length ** alpha  =  log_prob / limit ** alpha

because log-probabilities only fall, are never positive, and alpha is never negative. So it is for
((5 + length) / 6) ** alpha, which grows with the length as well. A coverage penalty is never
positive, and a hypothesis can reach none at all by what it attends to later: with or without one,
the bound is the same.
"""

import math
from bisect import insort
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from service.decoding.choices import Stopping
from service.decoding.options import DecodingOptions


class Ended(NamedTuple):
    """A hypothesis that ended, with the pointer that finds its tokens in the trellis.

    It consists of the tokens that lead to beam `parent` at `position`, and then `token`.
    `rank` is its place, from 0, among the candidates of the step in which it ended.
    """

    score: float
    log_prob: float
    rank: int
    position: int
    parent: int
    token: int
    token_log_prob: float


class StoppingRule(Protocol):
    """Decides which ended candidates count and when they are enough."""

    def counts(self, hypothesis: Ended) -> bool:
        """Whether a candidate, one of 2 * beam_size of its step, may end."""

    def threshold(self, ended: Sequence[Ended]) -> float:
        """The score that a live beam must be able to exceed; `ended` is sorted, best first."""


class BestRule:
    """`Stopping.BEST`: go on while a live beam can still enter the best `num_hypotheses`.

    Asking for more hypotheses searches longer, but never changes the best one: the search never
    stops before nothing can beat it. At the length limit every candidate ends.
    """

    def __init__(self, options: DecodingOptions) -> None:
        self._worst = options.num_hypotheses - 1

    def counts(self, hypothesis: Ended) -> bool:
        return True

    def threshold(self, ended: Sequence[Ended]) -> float:
        return ended[self._worst].score if self._worst < len(ended) else -math.inf


class FinishedRule:
    """`Stopping.FINISHED`: stop after round(beam_size * patience) hypotheses, as ctranslate2 does.

    Only candidates that rank among the first `beam_size` end. Without any penalty the search
    stops as soon as a best-ranked candidate has ended and there are `num_hypotheses`, whatever the
    patience (ctranslate2 4.8, `BeamSearch::search`, `allow_early_exit`).
    """

    def __init__(self, options: DecodingOptions) -> None:
        self._beam_size = options.beam_size
        self._needs_top = options.length_penalty == 0 and options.coverage_penalty == 0
        self._count = options.num_hypotheses if self._needs_top else options.patience_count

    def counts(self, hypothesis: Ended) -> bool:
        return hypothesis.rank < self._beam_size

    def threshold(self, ended: Sequence[Ended]) -> float:
        if len(ended) < self._count:
            return -math.inf
        if self._needs_top and not any(hypothesis.rank == 0 for hypothesis in ended):
            return -math.inf
        return math.inf


_RULES: Final[Mapping[Stopping, Callable[[DecodingOptions], StoppingRule]]] = {
    Stopping.BEST: BestRule,
    Stopping.FINISHED: FinishedRule,
}


class Ranking:
    """The hypotheses of one sentence that ended so far, best first; equal scores by age."""

    def __init__(self, options: DecodingOptions) -> None:
        self._num_hypotheses = options.num_hypotheses
        self._rule = _RULES[options.stopping](options)
        self._ended: list[Ended] = []

    def add(self, hypothesis: Ended) -> float:
        """Rank `hypothesis` among the others if it counts; returns the new threshold."""
        if self._rule.counts(hypothesis):
            insort(self._ended, hypothesis, key=lambda ended: -ended.score)
        return self._rule.threshold(self._ended)

    def best(self) -> list[Ended]:
        """The best `num_hypotheses` of them, or fewer if there aren't that many."""
        return self._ended[: self._num_hypotheses]
