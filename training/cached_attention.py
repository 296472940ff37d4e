"""`CachedAttention`: self-attention while a translation is written, one token at a time.

It has no weights, and is the one part of the Transformer that an exported graph replaces.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training.attention import ScaledDotProductAttention, merge_heads, split_heads


class CachedAttention(nn.Module):
    """Self-attention of one new token per row over the keys and values kept from earlier steps."""

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.attention = ScaledDotProductAttention()

    def forward(
        self, projected: Tensor, positions: Tensor, key_cache: Tensor, value_cache: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Context (rows, model_size) and both caches with the new token written at `positions`.

        `projected` (rows, 3 * model_size) holds query, key and value; `positions` is (rows,);
        caches are (rows, heads, capacity, head_size), larger ones if a position is beyond them.
        What lies after a row's position in its cache is never read.
        """
        query, key, value = (
            split_heads(part.unsqueeze(1), self.num_heads) for part in projected.chunk(3, -1)
        )
        key_cache = _write(key_cache, key, positions)
        value_cache = _write(value_cache, value, positions)
        context, _ = self.attention(query, key_cache, value_cache, positions + 1)
        return merge_heads(context).squeeze(1), key_cache, value_cache


def _write(cache: Tensor, entry: Tensor, positions: Tensor) -> Tensor:
    """A copy of the cache with entry (rows, heads, 1, head_size) at each row's position."""
    capacity, needed = cache.size(2), int(positions.max()) + 1
    if needed > capacity:
        # Doubling keeps the number of copies logarithmic in the length.
        cache = F.pad(cache, (0, 0, 0, max(needed, 2 * capacity) - capacity))
    rows = torch.arange(cache.size(0), device=cache.device)
    heads = torch.arange(cache.size(1), device=cache.device)
    indices = (rows.unsqueeze(1), heads.unsqueeze(0), positions.long().unsqueeze(1))
    return cache.index_put(indices, entry.squeeze(2).to(cache.dtype))
