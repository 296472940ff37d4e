"""Scoring functions: masks, additive and dot-product attention, and why scores are scaled."""

import math

import torch
from torch import Tensor

from docs.chapter.figure import Figure, Run
from training import plots
from training.attention import (
    AdditiveAttention,
    Attention,
    ScaledDotProductAttention,
    masked_softmax,
)

SIZES = tuple(2**power for power in range(1, 11))
ROWS = 500
KEYS = 10
_LENGTHS = torch.tensor([2, 6])


def valid_lengths(run: Run) -> Figure:
    """Softmax over the valid positions of two sentences, by row and by query."""
    scores = torch.randn(2, 2, 4)
    by_row = masked_softmax(scores, torch.tensor([2, 3]))
    by_query = masked_softmax(scores, torch.tensor([[1, 3], [2, 4]]))
    picture, axes = plots.canvas(columns=4, height=2.2, sharey=True)
    titles = ("length 2", "length 3", "lengths 1, 3", "lengths 2, 4")
    for place, title, weights in zip(axes, titles, (*by_row, *by_query), strict=True):
        plots.heatmap(place, weights, xlabel="key", ylabel="", title=title)
        plots.write_cells(place, weights)
        place.set_xticks(range(4))
        place.set_yticks(range(2))
    axes[0].set_ylabel("query")
    caption = (
        "masked_softmax with one length for each row of a batch (the two on the left), and with "
        "one for each query (the two on the right): nothing beyond it has weight."
    )
    numbers = {"by_row": by_row[:, 0].tolist(), "by_query": by_query.flatten(0, 1).tolist()}
    return Figure(picture, caption, numbers)


def scoring_functions(run: Run) -> Figure:
    """Both scoring functions, with equal keys and with different ones."""
    attentions: dict[str, tuple[Attention, int]] = {
        "additive (20 and 2)": (AdditiveAttention(20, 2, 8), 20),
        "scaled dot product (2 and 2)": (ScaledDotProductAttention(), 2),
    }
    values = torch.arange(40.0).view(1, 10, 4).expand(2, -1, -1)
    picture, axes = plots.canvas(rows=2, columns=2, height=4.4)
    numbers = {}
    for row, (name, (attention, query_size)) in enumerate(attentions.items()):
        queries = torch.randn(2, 1, query_size)
        for column, keys in enumerate((torch.ones(2, 10, 2), 2 * torch.randn(2, 10, 2))):
            context, weights = attention(queries, keys, values, _LENGTHS)
            kind = ("equal keys", "random keys")[column]
            _draw_weights(axes[2 * row + column], weights.detach(), f"{name}, {kind}")
            numbers[f"{name}, {kind}"] = context[:, 0].tolist()
    caption = (
        "Weights of one query each over 10 keys, of which 2 and 6 are valid. Sizes of query and "
        "key in brackets. Equal keys share the weight, whatever the scoring function."
    )
    return Figure(picture, caption, numbers)


def _draw_weights(axes: plots.Axes, weights: Tensor, title: str) -> None:
    rows = [f"length {length}" for length in _LENGTHS.tolist()]
    plots.heatmap(axes, weights[:, 0], xlabel="key", ylabel="", title=title, rows=rows)
    plots.write_cells(axes, weights[:, 0])
    axes.set_xticks(range(10))


def entropy(weights: Tensor) -> Tensor:
    """Of distributions over the last axis, in nats."""
    nats: Tensor = torch.special.entr(weights).sum(-1)
    return nats


def scores_by_size(size: int) -> tuple[Tensor, Tensor]:
    """Products of random queries and keys of that size, and the weights scaled attention gives."""
    queries, keys = torch.randn(1, ROWS, size), torch.randn(1, KEYS, size)
    _, weights = ScaledDotProductAttention()(queries, keys, keys, None)
    return queries @ keys.mT, weights


def scaling(run: Run) -> Figure:
    """Variance of q'k and entropy of its softmax over the size d, with 1 / sqrt(d) and without."""
    variances, entropies = [], []
    for size in SIZES:
        scores, weights = scores_by_size(size)
        plain = masked_softmax(scores, None)
        variances.append((scores.var().item(), scores.var().item() / size))
        entropies.append((entropy(plain).mean().item(), entropy(weights).mean().item()))
    names = ("q'k", "q'k / sqrt(d)")
    picture, axes = plots.canvas(columns=2, height=3.0)
    for place, ylabel, pairs in (
        (axes[0], "variance of the score", variances),
        (axes[1], f"entropy of {KEYS} weights (nats)", entropies),
    ):
        curves = dict(zip(names, zip(*pairs, strict=True), strict=True))
        plots.lines(place, SIZES, curves, xlabel="size d", ylabel=ylabel, marker="o")
        place.set_xscale("log", base=2)
    axes[0].set_yscale("log")
    axes[1].axhline(math.log(KEYS), color="#888888", linestyle=":")
    axes[1].set_ylim(0, 2.5)
    caption = (
        "Random queries and keys of variance 1. Unscaled, the variance of a score is d, and "
        "softmax sees one key only; divided by sqrt(d) both stay. Dotted: equal weights."
    )
    numbers = {
        "sizes": SIZES,
        "variance_over_size": [scaled for _, scaled in variances],
        "entropy": [plain for plain, _ in entropies],
        "entropy_scaled": [scaled for _, scaled in entropies],
    }
    return Figure(picture, caption, numbers)


FIGURES = (valid_lengths, scoring_functions, scaling)
