"""A tiny model whose every prediction depends on its source and on all tokens so far.

With it: random sources for it, the answer for a sentence alone, and equality of answers.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from service.decoding import DecodingOptions, Hypothesis, StepOutput, decode

_PRIME = 10_007


class ToyModel:
    """A `StepModel` over random tables, with a real state: a hash of what each row was fed.

    A row that is moved wrongly, left behind or fed at the wrong position therefore predicts other
    tokens or fails an assert. Token 0 is EOS and token 1 the start; sources have at most 32 tokens.
    `predict` is the same model without rows, for references. `reorders` holds the argument of
    every call of `reorder`, `mores` counts the calls of `more`.
    """

    start_id = 1
    eos_id = 0

    def __init__(self, vocabulary_size: int, seed: int = 0, eos_bias: float = 0.0) -> None:
        rng = np.random.default_rng(seed)
        logits = 2 * rng.standard_normal((_PRIME, vocabulary_size))
        logits[:, self.eos_id] += eos_bias
        logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
        self._table = logits.astype(np.float32)
        self._weights = rng.random((_PRIME, 32), np.float32)
        self._beam_size = 1
        self.reorders: list[NDArray[np.int64]] = []
        self.mores = 0
        self._last_step = 0, False, False
        self.source_lengths = np.zeros(0, np.int64)
        self.states = np.zeros(0, np.int64)
        self.positions = np.zeros(0, np.int64)

    def predict(
        self, source: Sequence[int], prefix: Sequence[int]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Log-probabilities (vocabulary,) and attention (source,) after a prefix without start."""
        state = np.array([_encode(source)])
        for token in (self.start_id, *prefix):
            state = _feed(state, np.array([token]))
        heads = self._heads(state, np.array([len(source)]))
        return self._table[state[0]], heads[0].mean(axis=0)

    def append(
        self,
        sources: Sequence[Sequence[int]],
        beam_size: int,
        shortlist: Sequence[bool] | None = None,
    ) -> None:
        assert beam_size == self._beam_size or not len(self.states)
        self._beam_size = beam_size
        states = np.array([_encode(source) for source in sources]).repeat(beam_size)
        lengths = [len(source) for source in sources]
        self.states = np.append(self.states, states)
        self.positions = np.append(self.positions, np.zeros_like(states))
        self.source_lengths = np.append(self.source_lengths, lengths)

    def step(
        self,
        tokens: NDArray[np.int64],
        positions: NDArray[np.int32],
        num_candidates: int,
        attention: bool,
        full: bool = False,
    ) -> StepOutput:
        assert tokens.shape == (len(self.source_lengths), self._beam_size)
        assert positions.dtype == np.int32 and np.array_equal(positions, self.positions)
        self.states = _feed(self.states, tokens.ravel())
        self.positions = self.positions + 1
        self._last_step = num_candidates, attention, full
        return self._predictions()

    def more(self, num_candidates: int) -> StepOutput:
        self.mores += 1
        self._last_step = num_candidates, *self._last_step[1:]
        return self._predictions()

    def _predictions(self) -> StepOutput:
        num_candidates, attention, full = self._last_step
        log_probs = self._table[self.states]
        ids = np.argsort(-log_probs, axis=1, kind="stable")[:, :num_candidates]
        lengths = np.repeat(self.source_lengths, self._beam_size)
        return StepOutput(
            log_probs=np.take_along_axis(log_probs, ids, axis=1),
            ids=ids,
            attention=self._heads(self.states, lengths) if attention else None,
            full_log_probs=log_probs if full else None,
        )

    def reorder(self, rows: NDArray[np.int64]) -> None:
        sentences = rows.reshape(-1, self._beam_size) // self._beam_size
        assert (sentences == sentences[:, :1]).all(), "beams of one sentence went apart"
        self.reorders.append(rows)
        self.states = self.states[rows]
        self.positions = self.positions[rows]
        self.source_lengths = self.source_lengths[sentences[:, 0]]

    def _heads(self, states: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[np.float32]:
        """(rows, 2, longest source)"""
        both = (self._attention(each, lengths) for each in (states, (states + 1) % _PRIME))
        return np.stack([*both], axis=1)

    def _attention(
        self, states: NDArray[np.int64], lengths: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        width = int(lengths.max())
        weights = self._weights[states, :width].astype(np.float64)
        padding = np.arange(width) >= lengths[:, None]
        weights = np.where(padding, 0, weights)
        # One after the other, so that the neighbours' lengths change nothing.
        weights /= weights.cumsum(axis=1)[:, -1:]
        weights[padding] = 7  # padding that leaks is to be noticed
        return weights.astype(np.float32)


def _encode(source: Sequence[int]) -> int:
    state = 17
    for token in source:
        state = (state * 31 + int(token) + 1) % _PRIME
    return state


def _feed(states: NDArray[np.int64], tokens: NDArray[np.int64]) -> NDArray[np.int64]:
    return (states * 37 + tokens * 101 + 5) % _PRIME


def random_sources(
    num: int,
    seed: int,
    lengths: range = range(12),
    words: range = range(2, 20),
    eos_id: int = ToyModel.eos_id,
) -> list[list[int]]:
    """Sources of random words with EOS, which the length doesn't count; by default for a toy."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(lengths.start, lengths.stop, num)
    return [[*rng.integers(words.start, words.stop, n).tolist(), eos_id] for n in drawn]


def alone(toy: ToyModel, source: Sequence[int], options: DecodingOptions) -> list[Hypothesis]:
    """The hypotheses of a sentence that has no neighbours."""
    return decode(toy, [source], options)[0]


def identical(left: Sequence[Hypothesis], right: Sequence[Hypothesis]) -> bool:
    """Everything equal to the last bit."""
    return len(left) == len(right) and all(
        (a.ids, a.score, a.log_prob) == (b.ids, b.score, b.log_prob)
        and a.finish_reason is b.finish_reason
        and np.array_equal(a.token_log_probs, b.token_log_probs)
        and _equal(a.attention, b.attention)
        and _equal(a.attention_heads, b.attention_heads)
        for a, b in zip(left, right, strict=True)
    )


def _equal(left: NDArray[np.float32] | None, right: NDArray[np.float32] | None) -> bool:
    if left is None or right is None:
        return left is right
    return np.array_equal(left, right)
