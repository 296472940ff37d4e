"""The training loss. The logits are a step's largest tensor: one pass makes their gradient too."""

from typing import Any

import torch
from torch import Tensor

_ROWS_AT_ONCE = 32  # x 8,000 pieces x 4 bytes = 1 MB: the softmax stays in the cache


def smoothed_cross_entropy(logits: Tensor, labels: Tensor, smoothing: float) -> Tensor:
    """Return the mean label-smoothed cross-entropy of a token, in nats.

    logits (tokens, vocabulary) of any float type, computed with in float32; labels (tokens,).
    Szegedy et al. 2016, section 7: the smoothed target is (1 - smoothing) on the label plus
    smoothing / vocabulary on every piece.
    """
    loss: Tensor = _SmoothedCrossEntropy.apply(logits, labels, smoothing)  # type: ignore[no-untyped-call]
    return loss


class _SmoothedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor, smoothing: float) -> Tensor:
        uniform = smoothing / logits.size(1)
        excess = torch.empty_like(logits)  # predicted minus smoothed target distribution
        total = torch.zeros(())
        for rows, columns, row_excess in zip(
            torch.split(logits, _ROWS_AT_ONCE),
            torch.split(labels.unsqueeze(1), _ROWS_AT_ONCE),
            torch.split(excess, _ROWS_AT_ONCE),
            strict=True,
        ):
            log_probs = rows.log_softmax(-1, dtype=torch.float32)
            likelihood = log_probs.gather(1, columns).sum()
            total -= (1 - smoothing) * likelihood + uniform * log_probs.sum()
            probs = log_probs.exp_()
            probs.scatter_add_(1, columns, probs.new_full(columns.shape, smoothing - 1))
            torch.sub(probs, uniform, out=row_excess)
        ctx.save_for_backward(excess)
        return total / len(labels)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, None, None]:
        (excess,) = ctx.saved_tensors
        return excess * (upstream[0] / len(excess)), None, None
