"""The Transformer translator (Vaswani et al. 2017), post-norm.

Owns the network and its caches. With the defaults it is numerically the model that CTranslate2
calls `TransformerSpec` with `pre_norm=False`, ReLU, scaled embeddings and the interleaved sinusoids
given as its encodings; as `TransformerConfig` can also say, the one that Hugging Face calls
`MarianMTModel`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training.attention import (
    CrossAttention,
    PositionLayout,
    SelfAttention,
    causal_lengths,
    sinusoidal_positions,
)
from training.cached_attention import CachedAttention
from training.model import (
    Embedding,
    StepOutput,
    TensorSpec,
    TiedEmbedding,
    Translator,
    TranslatorConfig,
)

Activation: TypeAlias = Literal["relu", "swish", "gelu"]
_ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "swish": F.silu,
    "gelu": F.gelu,
}


@dataclass(frozen=True)
class TransformerConfig(TranslatorConfig):
    """Sizes of a Transformer; the defaults train in an hour on two CPU cores.

    What comes after `max_positions` is there for networks that were trained elsewhere.
    """

    architecture: ClassVar[str] = "transformer"
    model_size: int = 256
    num_heads: int = 4
    feed_forward_size: int = 1024
    encoder_layers: int = 4
    decoder_layers: int = 2
    dropout: float = 0.1
    """On embeddings and on the output of every sublayer."""
    attention_dropout: float = 0.0
    """On attention weights."""
    max_positions: int = 1024
    """The longest source or target, in tokens."""
    source_vocabulary_size: int | None = None
    """Of a table of its own for the source; None shares that of the target."""
    activation: Activation = "relu"
    """Of the feed-forward layers; swish is x * sigmoid(x), gelu the exact one."""
    position_layout: PositionLayout = "interleaved"
    scale_embedding: bool = True
    """By sqrt(model_size)."""
    output_bias: bool = False
    """On the logits."""

    def build(self) -> "Transformer":
        return Transformer(self)


class FeedForward(nn.Module):
    """Two products with an activation between, at every position (Vaswani et al. 2017, 3.3)."""

    def __init__(self, model_size: int, inner_size: int, activation: Activation = "relu") -> None:
        super().__init__()
        self.activation = activation
        self.inner_projection = nn.Linear(model_size, inner_size)
        self.output_projection = nn.Linear(inner_size, model_size)

    def forward(self, hidden: Tensor) -> Tensor:
        inner = _ACTIVATIONS[self.activation](self.inner_projection(hidden))
        output: Tensor = self.output_projection(inner)
        return output


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward, each followed by residual, dropout and LayerNorm."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        size = config.model_size
        self.self_attention = SelfAttention(size, config.num_heads, config.attention_dropout)
        self.self_attention_norm = nn.LayerNorm(size)
        self.feed_forward = FeedForward(size, config.feed_forward_size, config.activation)
        self.feed_forward_norm = nn.LayerNorm(size)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, hidden: Tensor, lengths: Tensor) -> Tensor:
        """hidden (batch, source_len, model_size), lengths (batch,) -> like hidden."""
        attended, _ = self.self_attention(hidden, lengths)
        hidden = self.self_attention_norm(hidden + self.dropout(attended))
        output: Tensor = self.feed_forward_norm(hidden + self.dropout(self.feed_forward(hidden)))
        return output


class DecoderLayer(nn.Module):
    """Self-attention, cross-attention and feed-forward, each followed as in `EncoderLayer`."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        size = config.model_size
        self.self_attention = SelfAttention(size, config.num_heads, config.attention_dropout)
        self.self_attention_norm = nn.LayerNorm(size)
        self.cross_attention = CrossAttention(size, config.num_heads, config.attention_dropout)
        self.cross_attention_norm = nn.LayerNorm(size)
        self.feed_forward = FeedForward(size, config.feed_forward_size, config.activation)
        self.feed_forward_norm = nn.LayerNorm(size)
        self.dropout = nn.Dropout(config.dropout)
        self.cached_attention = CachedAttention(config.num_heads)

    def forward(
        self, hidden: Tensor, cross_key: Tensor, cross_value: Tensor, source_lengths: Tensor
    ) -> Tensor:
        """hidden (batch, target_len, model_size) -> like hidden; no position sees a later one."""
        # Padding comes last in a target, so the causal mask also hides it from every real token.
        lengths = causal_lengths(hidden.size(1), hidden.device)
        attended, _ = self.self_attention(hidden, lengths)
        hidden = self.self_attention_norm(hidden + self.dropout(attended))
        hidden, _ = self._attend_source(hidden, cross_key, cross_value, source_lengths)
        return hidden

    def step(
        self,
        hidden: Tensor,
        positions: Tensor,
        source_lengths: Tensor,
        cross: tuple[Tensor, Tensor],
        cache: tuple[Tensor, Tensor],
    ) -> tuple[Tensor, Tensor, tuple[Tensor, Tensor]]:
        """New hidden (sentence, beam, size), weights (sentence, heads, beam, source), new cache."""
        projected = self.self_attention.in_projection(hidden).flatten(0, 1)
        context, key_cache, value_cache = self.cached_attention(projected, positions, *cache)
        attended = self.self_attention.output_projection(context).view_as(hidden)
        hidden = self.self_attention_norm(hidden + attended)
        hidden, weights = self._attend_source(hidden, *cross, source_lengths)
        return hidden, weights, (key_cache, value_cache)

    def _attend_source(
        self, hidden: Tensor, cross_key: Tensor, cross_value: Tensor, source_lengths: Tensor
    ) -> tuple[Tensor, Tensor]:
        attended, weights = self.cross_attention(hidden, cross_key, cross_value, source_lengths)
        hidden = self.cross_attention_norm(hidden + self.dropout(attended))
        hidden = self.feed_forward_norm(hidden + self.dropout(self.feed_forward(hidden)))
        return hidden, weights


class Transformer(Translator):
    """Encoder and decoder of attention alone (Vaswani et al. 2017).

    Memory: per decoder layer the cross-attention's keys and values. State: per decoder layer the
    self-attention's keys and values so far. `StepOutput.attention` holds the cross-attention of all
    decoder layers, heads of layer 0 first.

    Source or target beyond `max_positions` raises IndexError.
    """

    config: TransformerConfig

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        size, scaled = config.model_size, config.scale_embedding
        self.embedding = TiedEmbedding(
            config.vocabulary_size, size, scaled=scaled, bias=config.output_bias
        )
        self.own_source_embedding = (
            Embedding(config.source_vocabulary_size, size, scaled=scaled)
            if config.source_vocabulary_size
            else None
        )
        self.encoder_layers = nn.ModuleList(
            EncoderLayer(config) for _ in range(config.encoder_layers)
        )
        self.decoder_layers = nn.ModuleList(
            DecoderLayer(config) for _ in range(config.decoder_layers)
        )
        self.dropout = nn.Dropout(config.dropout)
        positions = sinusoidal_positions(
            config.max_positions, config.model_size, config.position_layout
        )
        self.position_encodings: Tensor
        self.register_buffer("position_encodings", positions, persistent=False)
        self.apply(_initialise)

    @property
    def source_embedding(self) -> Embedding:
        return self.own_source_embedding or self.embedding

    @property
    def memory_specs(self) -> tuple[TensorSpec, ...]:
        return self._cache_specs("cross", "sentence", "source")

    @property
    def state_specs(self) -> tuple[TensorSpec, ...]:
        return self._cache_specs("self", "sentence * beam", "target")

    def _cache_specs(self, kind: str, row_axis: str, time_axis: str) -> tuple[TensorSpec, ...]:
        heads = self.config.num_heads
        axes = (row_axis, heads, time_axis, self.config.model_size // heads)
        return tuple(
            TensorSpec(f"{kind}_{part}_{layer}", axes)
            for layer in range(self.config.decoder_layers)
            for part in ("key", "value")
        )

    def decoder_features(
        self, source_ids: Tensor, source_lengths: Tensor, target_ids: Tensor
    ) -> Tensor:
        memory, _ = self.encode(source_ids, source_lengths)
        hidden = self._embed_sequence(self.embedding, target_ids)
        for layer, key, value in zip(self._decoder(), memory[::2], memory[1::2], strict=True):
            hidden = layer(hidden, key, value, source_lengths)
        return hidden

    def encode(
        self, source_ids: Tensor, source_lengths: Tensor
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        hidden = self._embed_sequence(self.source_embedding, source_ids)
        for layer in self.encoder_layers:
            hidden = layer(hidden, source_lengths)
        memory: list[Tensor] = []
        for layer in self._decoder():
            memory.extend(layer.cross_attention.project_memory(hidden))
        empty = tuple(tensor[:, :, :0] for tensor in memory)
        return tuple(memory), empty

    def step(
        self,
        tokens: Tensor,
        positions: Tensor,
        source_lengths: Tensor,
        memory: tuple[Tensor, ...],
        state: tuple[Tensor, ...],
    ) -> StepOutput:
        encodings = self.position_encodings[positions].view(*tokens.shape, -1)
        hidden = self.embedding(tokens) + encodings
        attention: list[Tensor] = []
        new_state: list[Tensor] = []
        tensors = (memory[::2], memory[1::2], state[::2], state[1::2])
        for layer, cross_key, cross_value, self_key, self_value in zip(
            self._decoder(), *tensors, strict=True
        ):
            hidden, weights, cache = layer.step(
                hidden, positions, source_lengths, (cross_key, cross_value), (self_key, self_value)
            )
            attention.append(weights)
            new_state.extend(cache)
        logits = self.output_layer(hidden).flatten(0, 1)
        by_row = torch.cat(attention, dim=1).transpose(1, 2).flatten(0, 1)
        return StepOutput(logits, by_row, tuple(new_state))

    def _decoder(self) -> list[DecoderLayer]:
        return cast(list[DecoderLayer], list(self.decoder_layers))

    def _embed_sequence(self, table: Embedding, ids: Tensor) -> Tensor:
        positions = torch.arange(ids.size(1), device=ids.device)
        embedded: Tensor = self.dropout(table(ids) + self.position_encodings[positions])
        return embedded


def _initialise(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        nn.init.zeros_(module.bias)
