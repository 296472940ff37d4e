"""What the heads of the served Transformer look at: all three kinds of its attention."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn

from docs.chapter.figure import Figure, Run
from docs.chapter.scoring import entropy
from docs.chapter.sentence import Example, example
from training import plots
from training.attention import MultiHeadAttention
from training.transformer import Transformer


@contextmanager
def recorded(modules: Iterable[nn.Module]) -> Iterator[list[Tensor]]:
    """The weights (heads, queries, keys) that each attention gives the first sentence of a call."""
    weights: list[Tensor] = []
    with ExitStack() as stack:
        for module in modules:
            assert isinstance(module, MultiHeadAttention)
            hook = module.register_forward_hook(lambda _, __, output: weights.append(output[1][0]))
            stack.callback(hook.remove)
        yield weights


@torch.no_grad()
def head_weights(network: Transformer, side: str, kind: str, shown: Example) -> Tensor:
    """Weights (layers, heads, queries, keys) of a side's `self_attention` or `cross_attention`.

    They are those of a training forward: each position of the target sees what came before it.
    """
    layers = getattr(network, f"{side}_layers")
    with recorded(getattr(layer, kind) for layer in layers) as weights:
        network(shown.source_ids, shown.source_lengths, shown.target_ids)
    return torch.stack(weights)


def draw_heads(
    weights: Tensor, queries: Sequence[str], keys: Sequence[str], height: float
) -> plots.Picture:
    """A row for each layer, a column for each head."""
    layers, heads = weights.shape[:2]
    picture, axes = plots.canvas(layers, heads, height, sharex=True, sharey=True)
    for place, matrix, (layer, head) in zip(
        axes,
        weights.flatten(0, 1),
        ((i, j) for i in range(layers) for j in range(heads)),
        strict=True,
    ):
        title = f"layer {layer}, head {head}"
        plots.heatmap(place, matrix, xlabel="", ylabel="", title=title, columns=keys, rows=queries)
        place.tick_params(labelsize=8, length=0)
        place.label_outer()
    picture.supylabel("query", fontsize=10)
    return picture


def entropies(weights: Tensor) -> list[list[float]]:
    """Of each layer's heads: their mean entropy over the queries, in nats."""
    by_head: list[list[float]] = entropy(weights).mean(-1).tolist()
    return by_head


def encoder_self_attention(run: Run) -> Figure:
    """Every head of the encoder: how the words of the source look at each other."""
    shown = example(run.served)
    weights = head_weights(run.served.network, "encoder", "self_attention", shown)
    picture = draw_heads(weights, shown.source_pieces, shown.source_pieces, height=7.2)
    caption = (
        "Encoder self-attention of the served Transformer (keys below, white 0, dark 1): some "
        "heads look at a neighbour, some at the words that belong together."
    )
    return Figure(picture, caption, {"entropy": entropies(weights)})


def decoder_self_attention(run: Run) -> Figure:
    """Every head of the decoder's self-attention, in which nothing looks ahead."""
    shown = example(run.served)
    weights = head_weights(run.served.network, "decoder", "self_attention", shown)
    picture = draw_heads(weights, shown.target_pieces, shown.target_pieces, height=4.4)
    caption = (
        "Decoder self-attention of the served Transformer (keys below): the causal mask leaves "
        "nothing above the diagonal."
    )
    ahead = weights.triu(1).sum().item()
    return Figure(picture, caption, {"entropy": entropies(weights), "weight_ahead": ahead})


def cross_attention(run: Run) -> Figure:
    """Every head with which the decoder looks at the source."""
    shown = example(run.served)
    weights = head_weights(run.served.network, "decoder", "cross_attention", shown)
    picture = draw_heads(weights, shown.target_pieces, shown.source_pieces, height=4.4)
    caption = (
        "Cross-attention of the served Transformer (queries: the target so far; keys: the source): "
        "in the upper layer it finds the word that comes next."
    )
    return Figure(picture, caption, {"entropy": entropies(weights)})


FIGURES = (encoder_self_attention, decoder_self_attention, cross_attention)
