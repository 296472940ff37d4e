"""Offline decoding and forced scoring of many sentences: validation, verification, experiments."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from service.decoding.batch import Batch
from service.decoding.hypothesis import Hypothesis
from service.decoding.model import StepModel
from service.decoding.options import DecodingOptions


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
    options = [
        replace(DecodingOptions.forcing(target, model.eos_id), length_penalty=length_penalty)
        for target in targets
    ]
    return [hypotheses[0] for hypotheses in decode(model, sources, options, max_rows=max_rows)]
