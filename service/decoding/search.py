"""Which tokens continue the live beams: pure functions over all sentences at once.

Beam search with two beams, EOS written `.`, candidates per beam k = 4, step 3 of one sentence:

    live beams       log_prob    continued by                  candidates, best first (2W = 4)
    0  the cat        -1.0       sat -0.2  . -0.9  is -3.0      0  the cat sat    -1.2  live 0
    1  a cat          -1.1       .   -0.3  sat -0.6  ...        1  a cat .        -1.4  ends
                                                                2  a cat sat      -1.7  live 1
                                                                3  the cat .      -1.9  ends

2W candidates always hold W live ones, because each beam has only one EOS. Every live beam keeps
the index of the beam it continues (here 0 and 1), so that the model's rows can follow.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.decoding.model import StepOutput


class Candidates(NamedTuple):
    """C continuations of every sentence, best first; all arrays are (sentences, C).

    totals     float64, log-probability of the whole hypothesis; -inf for one that can't be
    log_probs  float32, of the last token alone
    tokens     int64
    parents    int64, the beam that is continued
    """

    totals: NDArray[np.float64]
    log_probs: NDArray[np.float32]
    tokens: NDArray[np.int64]
    parents: NDArray[np.int64]

    def first(self, count: int) -> "Candidates":
        """The best `count` of every sentence."""
        if count == self.tokens.shape[1]:
            return self
        cut = slice(count)
        return Candidates(
            self.totals[:, cut], self.log_probs[:, cut], self.tokens[:, cut], self.parents[:, cut]
        )


def best_candidates(totals: NDArray[np.float64], output: StepOutput) -> Candidates:
    """The best 2W continuations of W beams, or the best one if W is 1; equal ones by beam, rank.

    totals (sentences, W): log-probability of each beam, -inf for those that don't exist (yet).
    """
    sentences, beam_size = totals.shape
    log_probs, ids = output.log_probs, output.ids
    if beam_size == 1:
        return Candidates(totals + log_probs, log_probs, ids, np.zeros(ids.shape, np.int64))
    width = ids.shape[1]
    sums = (totals.reshape(-1, 1) + log_probs).reshape(sentences, beam_size * width)
    best = (-sums).argsort(axis=1, kind="stable")[:, : 2 * beam_size]
    flat = best + np.arange(0, sums.size, sums.shape[1])[:, None]
    return Candidates(sums.take(flat), log_probs.take(flat), ids.take(flat), best // width)


def live_beams(candidates: Candidates, is_eos: NDArray[np.bool_], beam_size: int) -> Candidates:
    """The best W candidates that don't end with EOS; a greedy one that does gets a total of -inf.

    is_eos (sentences, C): which candidates end with EOS.
    """
    if not np.count_nonzero(is_eos):
        return candidates.first(beam_size)
    if beam_size == 1:
        totals = np.where(is_eos, -np.inf, candidates.totals)
        return Candidates(totals, candidates.log_probs, candidates.tokens, candidates.parents)
    live = is_eos.argsort(axis=1, kind="stable")[:, :beam_size]
    flat = live + np.arange(0, is_eos.size, is_eos.shape[1])[:, None]
    return Candidates(
        candidates.totals.take(flat),
        candidates.log_probs.take(flat),
        candidates.tokens.take(flat),
        candidates.parents.take(flat),
    )
