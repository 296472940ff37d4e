"""The decoding options over again, one sentence at a time, with lists: what tests compare with."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.decoding import DecodingOptions, LengthForm
from tests.toys import ToyModel

EOS = ToyModel.eos_id


@dataclass(frozen=True)
class Found:
    """A hypothesis: ids without EOS, and whether it ended with it."""

    score: float
    log_prob: float
    ids: tuple[int, ...]


def least_length(options: DecodingOptions, source: Sequence[int]) -> float:
    return max(options.min_length, options.min_length_ratio * len(source))


def ends_in(said: Sequence[int], sequence: Sequence[int]) -> bool:
    return len(said) >= len(sequence) and tuple(said[len(said) - len(sequence) :]) == tuple(
        sequence
    )


def is_banned(options: DecodingOptions, source: Sequence[int], said: list[int], token: int) -> bool:
    longer = [*said, token]
    if token == EOS and len(longer) < least_length(options, source):
        return True
    if token == EOS and options.return_alternatives and len(said) == len(options.prefix):
        return True
    if token in options.suppress_tokens:
        return True
    if any(ends_in(longer, sequence) for sequence in options.suppress_sequences):
        return True
    n = options.no_repeat_ngram_size
    ngrams = [tuple(longer[i : i + n]) for i in range(len(longer) - n + 1)]
    return n > 0 and bool(ngrams) and ngrams[-1] in ngrams[:-1]


def continuations(
    toy: ToyModel, source: Sequence[int], said: list[int], options: DecodingOptions
) -> NDArray[np.float64]:
    """Log-probability of every token after what was said, -inf if it may not come."""
    log_probs: NDArray[np.float64] = toy.predict(source, said)[0].astype(np.float64)
    if len(said) < len(options.prefix):
        wanted = options.prefix[len(said)]
        if not options.prefix_bias_beta:
            return np.where(np.arange(len(log_probs)) == wanted, log_probs, -np.inf)
        if said == list(options.prefix[: len(said)]):
            beta = options.prefix_bias_beta
            probs = (1 - beta) * np.exp(log_probs)
            probs[wanted] += beta
            log_probs = np.log(probs)
    for token in range(len(log_probs)):
        if token in said:
            log_probs[token] *= options.repetition_penalty
        if is_banned(options, source, said, token):
            log_probs[token] = -np.inf
    if options.return_alternatives and len(said) > len(options.prefix):
        log_probs[np.arange(len(log_probs)) != log_probs.argmax()] = -np.inf
    elif options.return_alternatives:
        log_probs[np.exp(log_probs) < options.min_alternative_prob] = -np.inf
    return log_probs


def score_of(
    toy: ToyModel, source: Sequence[int], ids: list[int], log_prob: float, length: int,
    options: DecodingOptions,
) -> float:  # fmt: skip
    if options.length_form is LengthForm.WU:
        divisor = (5 + length) ** options.length_penalty / 6**options.length_penalty
    else:
        divisor = length**options.length_penalty
    attention = [toy.predict(source, ids[:position])[1] for position in range(length)]
    coverage = np.zeros(len(source)) + sum(attention)
    uncovered = sum(math.log(min(max(given, 1e-38), 1.0)) for given in coverage.tolist())
    return float(log_prob / divisor + options.coverage_penalty * uncovered)


def exhaustive(toy: ToyModel, source: Sequence[int], options: DecodingOptions) -> list[Found]:
    """Every hypothesis there is, best first."""
    limit = options.length_limit(len(source))

    def grow(said: list[int], total: float) -> Iterator[Found]:
        for token, log_prob in enumerate(continuations(toy, source, said, options).tolist()):
            if log_prob == -math.inf:
                continue
            ids, length = said if token == EOS else [*said, token], len(said) + 1
            if token == EOS or length == limit:
                value = score_of(toy, source, ids, total + log_prob, length, options)
                yield Found(value, total + log_prob, tuple(ids))
            else:
                yield from grow(ids, total + log_prob)

    return sorted(grow([], 0.0), key=lambda found: -found.score)


def greedy(toy: ToyModel, source: Sequence[int], options: DecodingOptions) -> tuple[int, ...]:
    """The ids that always taking the likeliest token gives."""
    said: list[int] = []
    while len(said) < options.length_limit(len(source)):
        token = int(continuations(toy, source, said, options).argmax())
        if token == EOS:
            break
        said.append(token)
    return tuple(said)
