"""What can be said of a layer without an aligner.

Pieces that both languages share (names, numbers, punctuation) need no reference alignment: one that
stands exactly once on either side is its own translation. A layer is worth the attention that such
pieces pay to themselves, at the step that predicts them.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from export.alignment.attention import Weights, forced_attention
from export.graphs import num_attention_layers
from training.data import Example
from training.model import Translator


def alignment_scores(model: Translator, examples: Sequence[Example]) -> list[float]:
    """The mean attention that shared pieces get in each layer, from 0 to 1; 0 if there are none."""
    num_layers = num_attention_layers(model)
    paid = [
        looks
        for example, weights in zip(examples, forced_attention(model, examples), strict=True)
        for looks in _paid(example, weights)
    ]
    by_head = np.mean(paid, axis=0) if paid else np.zeros(num_layers)
    scores: list[float] = by_head.reshape(num_layers, -1).mean(axis=1).tolist()
    return scores


def _paid(example: Example, weights: Weights) -> Iterator[Weights]:
    """(heads,) of each shared piece."""
    source, target = example.source_ids[:-1], example.target_ids[:-1]
    for piece in sorted(set(source) & set(target)):
        if source.count(piece) == target.count(piece) == 1:
            yield weights[:, target.index(piece), source.index(piece)]
