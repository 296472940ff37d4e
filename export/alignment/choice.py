"""The decoder layer whose attention the step graph returns, averaged over its heads, and why."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from export.alignment.attention import forced_attention
from export.alignment.reference import AlignedPair, agreement
from export.alignment.shared import alignment_scores
from export.graphs import num_attention_heads, num_attention_layers
from training.data import Example
from training.model import Translator


@dataclass(frozen=True, slots=True)
class Choice:
    """report: how the layer was chosen, and what each had to say for itself, as plain JSON."""

    layer: int
    report: dict[str, Any]


def by_agreement(model: Translator, pairs: Sequence[AlignedPair]) -> Choice:
    """The layer whose alignments agree best with a statistical aligner's."""
    heads = num_attention_heads(model)
    attention = forced_attention(model, [pair.example for pair in pairs])
    layers = [
        agreement(pairs, [weights[first : first + heads].mean(axis=0) for weights in attention])
        for first in range(0, num_attention_layers(model) * heads, heads)
    ]
    errors = [layer.error_rate for layer in layers]
    report = {
        "chosen_by": "agreement with a statistical aligner",
        "pairs": len(pairs),
        "layers": [layer.to_dict() for layer in layers],
    }
    return Choice(errors.index(min(errors)), report)


def by_shared_pieces(model: Translator, examples: Sequence[Example]) -> Choice:
    """The layer that looks most at what is the same in both languages."""
    scores = alignment_scores(model, examples)
    report = {
        "chosen_by": "attention to shared pieces, for want of an aligner",
        "pairs": len(examples),
        "layers": [{"attention_to_shared_pieces": round(score, 3)} for score in scores],
    }
    return Choice(scores.index(max(scores)), report)


def by_hand(model: Translator, layer: int) -> Choice:
    """The layer that the caller wants. Raises ValueError if the network has none such."""
    count = num_attention_layers(model)
    if not 0 <= layer < count:
        raise ValueError(
            f"--attention-layer is {layer}; the network's are 0 to {count - 1}, leave it out for "
            "the one that aligns best"
        )
    return Choice(layer, {"chosen_by": "hand"})
