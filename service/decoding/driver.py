"""Offline decoding and forced scoring of many sentences: validation, verification, experiments."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from service.decoding.batch import Batch
from service.decoding.hypothesis import Hypothesis
from service.decoding.model import StepModel
from service.decoding.options import DecodingOptions, FinishReason


def decode(
    model: StepModel,
    sources: Sequence[Sequence[int]],
    options: DecodingOptions | Sequence[DecodingOptions],
    *,
    max_rows: int = 64,
) -> list[list[Hypothesis]]:
    """Translate sources, given as ids with EOS; the hypotheses of each, in the order given.

    The longest go first, and others follow in flight as rows get free, at most `max_rows` at once
    (but always one sentence). The model must have no rows, and has none afterwards.
    """
    if isinstance(options, DecodingOptions):
        options = [options] * len(sources)
    assert len(options) == len(sources)
    results: list[list[Hypothesis]] = [[] for _ in sources]

    def beam_size(index: int) -> int:
        return options[index].beam_size

    by_length = sorted(range(len(sources)), key=lambda index: -len(sources[index]))
    for width, group in groupby(sorted(by_length, key=beam_size), key=beam_size):
        batch = Batch[int](model, width)
        waiting = list(group)[::-1]
        capacity = max(1, max_rows // width)
        while waiting or len(batch):
            free = capacity - len(batch)
            # Encoding a few newcomers together is cheaper than one by one.
            if waiting and 4 * free >= capacity:
                joining = [waiting.pop() for _ in range(min(free, len(waiting)))]
                batch.join(joining, [sources[i] for i in joining], [options[i] for i in joining])
            for index, hypotheses in batch.step():
                results[index] = hypotheses
    return results


def score(
    model: StepModel,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    *,
    length_penalty: float = 1.0,
    max_rows: int = 64,
) -> list[Hypothesis]:
    """What the model thinks of given translations: forced decoding.

    sources are ids with EOS, targets ids without; EOS is scored as the last token. The hypotheses
    carry attention. The model must have no rows, and has none afterwards.
    """
    assert len(sources) == len(targets)
    by_length = sorted(range(len(targets)), key=lambda index: -len(targets[index]))
    results: dict[int, Hypothesis] = {}
    for start in range(0, len(by_length), max_rows):
        chunk = by_length[start : start + max_rows]
        forced = _force(model, [sources[i] for i in chunk], [targets[i] for i in chunk])
        for index, (log_probs, attention) in zip(chunk, forced, strict=True):
            log_prob = float(log_probs.sum(dtype=np.float64))
            results[index] = Hypothesis(
                ids=tuple(targets[index]),
                log_prob=log_prob,
                score=log_prob / len(log_probs) ** length_penalty,
                finish_reason=FinishReason.END_OF_SENTENCE,
                token_log_probs=log_probs,
                attention=attention[: len(targets[index]), : len(sources[index])],
            )
    return [results[index] for index in range(len(targets))]


def _force(
    model: StepModel, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> Iterator[tuple[NDArray[np.float32], NDArray[np.float32]]]:
    """Log-probabilities (target + 1,) and attention (target + 1, source) of each, longest first."""
    lengths = np.array([len(target) + 1 for target in targets])
    forced = np.full((len(targets), lengths[0]), model.eos_id)
    for row, target in enumerate(targets):
        forced[row, : len(target)] = target
    log_probs = np.zeros(forced.shape, np.float32)
    attention = np.zeros((*forced.shape, max(map(len, sources))), np.float32)

    model.append(sources, 1)
    tokens = np.full((len(targets), 1), model.start_id)
    for position in range(lengths[0]):
        count = np.count_nonzero(lengths > position)
        if count < len(tokens):
            model.reorder(np.arange(count))  # the shortest are last and leave first
        tokens = tokens[:count]
        positions = np.full(count, position, np.int32)
        output = model.step(tokens, positions, 1, attention=True, full=True)
        assert output.full_log_probs is not None and output.attention is not None
        tokens = forced[:count, position : position + 1]
        log_probs[:count, position] = np.take_along_axis(output.full_log_probs, tokens, 1)[:, 0]
        width = min(attention.shape[2], output.attention.shape[1])
        attention[:count, position, :width] = output.attention[:, :width]
    model.reorder(np.arange(0))
    for row, length in enumerate(lengths.tolist()):
        yield log_probs[row, :length], attention[row, :length]
