"""Attention: scoring functions, masking by valid length, heads and position encodings.

Owns every way in which a query looks at keys; knows no model, no vocabulary and no cache. A mask is
always a *valid length*: of a row (padding), or of each query (causal: the lengths 1, 2, 3, ...).

    AdditiveAttention           v' tanh(W q + U k)        queries and keys of different sizes
    ScaledDotProductAttention   q'k / sqrt(d)             queries and keys of one size
    MultiHeadAttention          either of them in parallel subspaces, by default the latter
      ├── SelfAttention         queries, keys and values from one sequence, one product
      └── CrossAttention        queries from one sequence, keys and values from another
"""

import math
from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn


def _mask_value(dtype: torch.dtype) -> float:
    """The score of a masked position: finite, so that a fully masked row is uniform and not NaN."""
    return -1e4 if dtype == torch.float16 else -1e9


def valid_mask(lengths: Tensor, size: int) -> Tensor:
    """True at the valid positions: lengths (...,) -> (..., size)."""
    return torch.arange(size, device=lengths.device) < lengths.unsqueeze(-1)


def causal_lengths(size: int, device: torch.device | None = None) -> Tensor:
    """Valid lengths (1, size) by which each query of a sequence sees itself and its past."""
    return torch.arange(1, size + 1, device=device).unsqueeze(0)


def masked_softmax(scores: Tensor, lengths: Tensor | None) -> Tensor:
    """Softmax over the last axis, restricted to the first `lengths` positions.

    `scores` is (batch, queries, keys) or (batch, heads, queries, keys); `lengths` is (batch,) or
    (batch, queries), or None for no mask. Where a length is 0 the weights are uniform.
    """
    if lengths is not None:
        scores = scores + _mask_bias(lengths, scores)
    return torch.softmax(scores, dim=-1)


def _mask_bias(lengths: Tensor, scores: Tensor) -> Tensor:
    """0 at valid, `_mask_value` at other positions; its axes broadcast over those of `scores`."""
    mask = valid_mask(lengths, scores.size(-1))
    if lengths.dim() == 1:
        mask = mask.unsqueeze(1)
    if scores.dim() == 4:
        mask = mask.unsqueeze(1)
    return torch.where(mask, 0.0, _mask_value(scores.dtype)).to(scores.dtype)


class AdditiveAttention(nn.Module):
    """Scores by a one-layer network: v' tanh(W q + U k + b) (Bahdanau et al. 2015, A.1.2)."""

    def __init__(self, query_size: int, key_size: int, attention_size: int) -> None:
        super().__init__()
        self.query_projection = nn.Linear(query_size, attention_size, bias=False)
        self.key_projection = nn.Linear(key_size, attention_size)
        self.score_projection = nn.Linear(attention_size, 1, bias=False)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, lengths: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Context (..., queries, value_size) and weights (..., queries, keys).

        Queries are (..., queries, query_size), keys (..., keys, key_size) and values
        (..., keys, value_size), where `...` is batch, or batch and heads; lengths as in
        `masked_softmax`.
        """
        return self.attend(queries, self.key_projection(keys), values, lengths)

    def attend(
        self, queries: Tensor, projected_keys: Tensor, values: Tensor, lengths: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """As `forward`, with U k + b (..., keys, attention_size) computed beforehand.

        The keys of a sentence stay the same while it is decoded, so they are projected once.
        """
        projected_queries = self.query_projection(queries)
        features = torch.tanh(projected_queries.unsqueeze(-2) + projected_keys.unsqueeze(-3))
        scores: Tensor = self.score_projection(features).squeeze(-1)
        weights = masked_softmax(scores, lengths)
        return torch.matmul(weights, values), weights


class ScaledDotProductAttention(nn.Module):
    """Scores by the product of query and key: q'k / sqrt(d) (Vaswani et al. 2017, 3.2.1).

    Spelled out, because at the length of a sentence PyTorch's fused CPU kernel is no faster in
    float32 and four times slower to train in bfloat16.
    """

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, keys: Tensor, values: Tensor, lengths: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Context (..., queries, value_size) and weights (..., queries, keys).

        Queries are (..., queries, d), keys (..., keys, d) and values (..., keys, value_size), where
        `...` is batch, or batch and heads; lengths as in `masked_softmax`.
        """
        queries = queries / math.sqrt(queries.size(-1))
        weights = masked_softmax(torch.matmul(queries, keys.transpose(-2, -1)), lengths)
        return torch.matmul(self.dropout(weights), values), weights


Attention: TypeAlias = AdditiveAttention | ScaledDotProductAttention


class MultiHeadAttention(nn.Module):
    """Attention in `num_heads` subspaces at once (Vaswani et al. 2017, 3.2.2).

    What self- and cross-attention share: everything after the projections of query, key and value,
    which are (batch, num_heads, length, head_size) here. `attention` is what every head scores
    with, by default the scaled dot product with `dropout` on its weights.

    Raises ValueError if `model_size` isn't divisible by `num_heads`.
    """

    def __init__(
        self,
        model_size: int,
        num_heads: int,
        dropout: float = 0.0,
        attention: Attention | None = None,
    ) -> None:
        super().__init__()
        if model_size % num_heads:
            raise ValueError(
                f"model_size is {model_size}, not a multiple of num_heads {num_heads}; "
                "every head needs the same size"
            )
        self.num_heads = num_heads
        self.attention = attention or ScaledDotProductAttention(dropout)
        self.output_projection = nn.Linear(model_size, model_size)

    def attend(
        self, query: Tensor, key: Tensor, value: Tensor, lengths: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Output (batch, queries, model_size) and weights (batch, heads, queries, keys)."""
        context, weights = self.attention(query, key, value, lengths)
        output: Tensor = self.output_projection(merge_heads(context))
        return output, weights


class SelfAttention(MultiHeadAttention):
    """A sequence that attends to itself; one product gives query, key and value side by side."""

    def __init__(
        self,
        model_size: int,
        num_heads: int,
        dropout: float = 0.0,
        attention: Attention | None = None,
    ) -> None:
        super().__init__(model_size, num_heads, dropout, attention)
        self.in_projection = nn.Linear(model_size, 3 * model_size)

    def forward(self, sequence: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
        """Output (batch, length, model_size) and weights (batch, heads, length, length).

        `sequence` is (batch, length, model_size), `lengths` as in `masked_softmax`.
        """
        query, key, value = (
            split_heads(part, self.num_heads) for part in self.in_projection(sequence).chunk(3, -1)
        )
        return self.attend(query, key, value, lengths)


class CrossAttention(MultiHeadAttention):
    """Queries of one sequence that attend to another, whose keys and values can be kept."""

    def __init__(
        self,
        model_size: int,
        num_heads: int,
        dropout: float = 0.0,
        attention: Attention | None = None,
    ) -> None:
        super().__init__(model_size, num_heads, dropout, attention)
        self.query_projection = nn.Linear(model_size, model_size)
        self.key_value_projection = nn.Linear(model_size, 2 * model_size)

    def project_memory(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Key and value (batch, heads, keys, head_size) of a memory (batch, keys, model_size)."""
        key, value = self.key_value_projection(memory).chunk(2, -1)
        return split_heads(key, self.num_heads), split_heads(value, self.num_heads)

    def forward(
        self, queries: Tensor, key: Tensor, value: Tensor, lengths: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Output (batch, queries, model_size) and weights (batch, heads, queries, keys).

        `queries` is (batch, queries, model_size); key and value come from `project_memory`.
        """
        query = split_heads(self.query_projection(queries), self.num_heads)
        return self.attend(query, key, value, lengths)


def split_heads(sequence: Tensor, num_heads: int) -> Tensor:
    """(batch, length, heads * head_size) -> (batch, heads, length, head_size)."""
    batch, length, size = sequence.shape
    return sequence.view(batch, length, num_heads, size // num_heads).transpose(1, 2)


def merge_heads(heads: Tensor) -> Tensor:
    """(batch, heads, length, head_size) -> (batch, length, heads * head_size)."""
    return heads.transpose(1, 2).flatten(2)


PositionLayout: TypeAlias = Literal["interleaved", "halves"]


def sinusoidal_positions(
    max_positions: int, size: int, layout: PositionLayout = "interleaved"
) -> Tensor:
    """Position encodings (max_positions, size): sines at even columns, cosines at odd ones.

    In "halves", all sines come before all cosines. The wavelengths grow geometrically from 2 pi to
    10000 * 2 pi (Vaswani et al. 2017, 3.5).
    """
    position = torch.arange(max_positions, dtype=torch.float64).unsqueeze(1)
    frequency = torch.pow(10000.0, -torch.arange(0, size, 2, dtype=torch.float64) / size)
    angles = position * frequency
    if layout == "halves":
        return torch.cat((angles.sin(), angles.cos()), dim=1)[:, :size].float()
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)[:, :size].float()
