"""What every head looks at while the network is made to say given translations."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from training.data import Example, collate
from training.model import Translator

_BATCH_SIZE = 64

Weights = NDArray[np.float32]


@torch.inference_mode()
def forced_attention(model: Translator, examples: Sequence[Example]) -> list[Weights]:
    """Of each example (all heads of all layers, target tokens without EOS, source tokens).

    The heads of layer 0 come first, as in the network's `StepOutput.attention`.
    """
    model.eval()
    found: dict[int, Weights] = {}
    # Examples of like lengths together need few steps and little padding.
    order = sorted(range(len(examples)), key=lambda i: len(examples[i].target_ids))
    for first in range(0, len(order), _BATCH_SIZE):
        chosen = order[first : first + _BATCH_SIZE]
        together = _steps(model, [examples[index] for index in chosen])
        for index, weights in zip(chosen, together, strict=True):
            example = examples[index]
            sizes = len(example.target_ids) - 1, len(example.source_ids)
            found[index] = weights[:, : sizes[0], : sizes[1]]
    return [found[index] for index in range(len(examples))]


def _steps(model: Translator, examples: Sequence[Example]) -> Weights:
    """(examples, heads, longest target, longest source)"""
    batch = collate(examples)
    memory, state = model.encode(batch.source_ids, batch.source_lengths)
    weights = []
    for position in range(batch.target_ids.size(1)):
        tokens = batch.target_ids[:, position : position + 1]
        positions = torch.full((len(examples),), position)
        output = model.step(tokens, positions, batch.source_lengths, memory, state)
        state = output.state
        weights.append(output.attention)
    stacked: Weights = torch.stack(weights, dim=2).numpy()
    return stacked
