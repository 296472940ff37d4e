"""Which layer's attention tells best where a word comes from.

Pieces that both languages share (names, numbers, punctuation) need no reference alignment: one that
stands exactly once on either side is its own translation. A layer is worth the attention that such
pieces pay to themselves, at the step that predicts them.
"""

from collections.abc import Sequence

import numpy as np

from export.graphs import num_attention_heads, num_attention_layers
from service.decoding import score
from training.data import Example
from training.model import Translator
from training.step_model import TorchStepModel


def best_attention_layer(model: Translator, examples: Sequence[Example]) -> int:
    """The layer that pays shared pieces most, averaged over its heads."""
    scores = alignment_scores(model, examples)
    return scores.index(max(scores))


def alignment_scores(model: Translator, examples: Sequence[Example]) -> list[float]:
    """The mean attention that shared pieces get in each layer, from 0 to 1; 0 if there are none."""
    heads = num_attention_heads(model)
    return [
        _alignment_score(TorchStepModel(model, slice(first, first + heads)), examples)
        for first in range(0, num_attention_layers(model) * heads, heads)
    ]


def _alignment_score(model: TorchStepModel, examples: Sequence[Example]) -> float:
    sources = [example.source_ids for example in examples]
    targets = [example.target_ids[:-1] for example in examples]
    paid = []
    for source, hypothesis in zip(sources, score(model, sources, targets), strict=True):
        assert hypothesis.attention is not None
        paid += [
            hypothesis.attention[hypothesis.ids.index(piece), source.index(piece)]
            for piece in set(source) & set(hypothesis.ids)
            if source.count(piece) == hypothesis.ids.count(piece) == 1
        ]
    return float(np.mean(paid)) if paid else 0.0
