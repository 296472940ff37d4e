"""What the search asks of a model. Torch, onnxruntime and a toy are its adapters."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class StepOutput:
    """Predictions of the next token of every row; valid until the model is called again.

    log_probs       (rows, k) float32, descending; k is the number of candidates asked for, or the
                    vocabulary if that is smaller
    ids             (rows, k) int64, distinct within a row
    attention       (rows, heads, source) float32 if asked, of the heads whose mean is the model's
                    attention; columns past a row's own source are ignored
    full_log_probs  (rows, vocabulary) float32 if asked
    """

    log_probs: NDArray[np.float32]
    ids: NDArray[np.int64]
    attention: NDArray[np.float32] | None = None
    full_log_probs: NDArray[np.float32] | None = None


class StepModel(Protocol):
    """A model with the memory and the state of its rows; it starts with none.

    N sentences have W rows each, one per beam; row `i` belongs to sentence `i // W`. Rows are
    independent: no row's output depends on the others. W changes only while there are no rows.
    """

    @property
    def start_id(self) -> int:
        """The token fed at position 0."""

    @property
    def eos_id(self) -> int:
        """The token that ends a sentence."""

    def append(
        self,
        sources: Sequence[Sequence[int]],
        beam_size: int,
        shortlist: Sequence[bool] | None = None,
    ) -> None:
        """Encode newcomers, given as ids with EOS, and append their rows, W alike for each.

        `shortlist` says which of them choose from a list of words of their own, if the model knows
        one, rather than from the whole vocabulary; by default none.

        If it raises, the rows are as before.
        """

    def step(
        self,
        tokens: NDArray[np.int64],
        positions: NDArray[np.int32],
        num_candidates: int,
        attention: bool,
        full: bool = False,
    ) -> StepOutput:
        """Feed every row its last token and predict the next.

        tokens (N, W), positions (N * W,) counted from 0. Gives the best `num_candidates` tokens
        of every row, or the whole vocabulary if that is smaller, and the attention and the
        log-probabilities of the whole vocabulary if asked.
        """

    def more(self, num_candidates: int) -> StepOutput:
        """The output of the last step again, with that many candidates; before any `reorder`."""

    def reorder(self, rows: NDArray[np.int64]) -> None:
        """Let new row `i` continue old row `rows[i]`; `rows` is (M * W,) with M <= N.

        The new sentence `i` is the old sentence `rows[i * W] // W`, and all its W rows come from
        that one; sentences not named leave. Only rows with `rows[i] != i` are moved.
        """
