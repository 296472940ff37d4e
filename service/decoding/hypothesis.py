"""One translation of one sentence, as token ids."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.decoding.choices import FinishReason


@dataclass(frozen=True, slots=True, eq=False)
class Hypothesis:
    """A finished hypothesis.

    ids              target ids without the start and without EOS
    log_prob         natural log, <= 0, of all its tokens, EOS included if it ended with one
    score            log_prob over the length's divisor, and the coverage penalty: what hypotheses
                     are ranked by; see `DecodingOptions`
    token_log_probs  (len(ids),) float32, one more if it ended with EOS; they sum to log_prob. The
                     model's own, but for a repetition penalty and a biased prefix
    attention        (len(ids), source_length) float32 or None if nobody asked: what each token
                     attended to, over the real source tokens with EOS as the last column; rows
                     sum to 1; the row of the target's EOS is left out
    attention_heads  (heads, len(ids), source_length) float32 or None if nobody asked: of what the
                     attention is the mean
    """

    ids: tuple[int, ...]
    log_prob: float
    score: float
    finish_reason: FinishReason
    token_log_probs: NDArray[np.float32]
    attention: NDArray[np.float32] | None
    attention_heads: NDArray[np.float32] | None = None
