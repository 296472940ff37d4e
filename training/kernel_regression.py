"""Attention in its oldest form: kernel regression (Nadaraya 1964; Watson 1964).

Owns a scoring function, the Gaussian kernel, and a small regression problem to look at it with. It
attends as `training.attention` does: places are keys, what was measured there are values, and a
place that is asked about is a query.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from training.attention import masked_softmax


class GaussianAttention(nn.Module):
    """Scores by distance: -((q - k) / width)^2 / 2, whose softmax is a Gaussian kernel's weights.

    `precision` is 1 / width: a parameter, so that the width can be learned.
    """

    def __init__(self, width: float = 1.0) -> None:
        super().__init__()
        self.precision = nn.Parameter(torch.tensor(1.0 / width))

    @property
    def width(self) -> float:
        """In the unit of queries and keys."""
        return 1.0 / abs(float(self.precision.detach()))

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, lengths: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Context (batch, queries, value_size) and weights (batch, queries, keys).

        Queries are (batch, queries, size), keys (batch, keys, size) and values
        (batch, keys, value_size); lengths as in `masked_softmax`.
        """
        distances = (queries.unsqueeze(-2) - keys.unsqueeze(-3)) * self.precision
        weights = masked_softmax(-distances.square().sum(-1) / 2, lengths)
        return torch.matmul(weights, values), weights


@dataclass(frozen=True, eq=False)
class Samples:
    """Measurements `y` (n,) at the places `x` (n,), in ascending order."""

    x: Tensor
    y: Tensor


def truth(x: Tensor) -> Tensor:
    """What is measured, without noise: 2 sin x + x^0.8, for x >= 0."""
    return 2 * x.sin() + x.pow(0.8)


def draw_samples(count: int, generator: torch.Generator, noise: float = 0.5) -> Samples:
    """Measurements at random places in [0, 5), with normal noise of that standard deviation."""
    x = torch.sort(5 * torch.rand(count, generator=generator)).values
    return Samples(x, truth(x) + noise * torch.randn(count, generator=generator))


def predict(attention: GaussianAttention, samples: Samples, x: Tensor) -> tuple[Tensor, Tensor]:
    """Predictions (m,) at the places x (m,), and their weights over the samples (m, n)."""
    context, weights = attention(_row(x), _row(samples.x), _row(samples.y))
    return context[0, :, 0], weights[0]


def _row(numbers: Tensor) -> Tensor:
    """(n,) -> (1, n, 1): one batch of n numbers."""
    return numbers.view(1, -1, 1)


def leave_one_out_errors(attention: GaussianAttention, samples: Samples) -> Tensor:
    """Errors (n,) of the prediction at each sample from all others.

    With itself among the keys a sample would be predicted best by an infinitely narrow kernel.
    """
    others = ~torch.eye(len(samples.x), dtype=torch.bool)
    keys, values = (_others(numbers, others) for numbers in (samples.x, samples.y))
    context, _ = attention(samples.x.view(-1, 1, 1), keys, values)
    errors: Tensor = context[:, 0, 0] - samples.y
    return errors


def _others(numbers: Tensor, others: Tensor) -> Tensor:
    """(n,) -> (n, n - 1, 1): row i has all but number i."""
    count = len(numbers)
    return numbers.expand(count, count)[others].view(count, count - 1, 1)


def fit(
    attention: GaussianAttention, samples: Samples, epochs: int, rate: float = 0.5
) -> list[float]:
    """Learn the width by gradient descent; the mean squared leave-one-out error of each epoch.

    Each is what it was before that epoch's step.
    """
    optimizer = torch.optim.SGD(attention.parameters(), lr=rate)
    losses = []
    for _ in range(epochs):
        loss = leave_one_out_errors(attention, samples).square().mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.item())
    return losses
