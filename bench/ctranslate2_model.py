"""Our Transformer as a CTranslate2 model: a peer to race against that is also an oracle.

With float32 weights it gives our greedy translations token for token, so that a comparison of
speeds compares the same work. CTranslate2 is a development dependency: nothing that is served
imports this.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from ctranslate2.specs import TransformerSpec
from ctranslate2.specs.common_spec import Activation
from torch import Tensor, nn

from training.attention import CrossAttention, SelfAttention
from training.transformer import DecoderLayer, EncoderLayer, FeedForward, Transformer
from training.vocabulary import BOS_ID, EOS_ID, UNK_ID


def save_ctranslate2_model(
    model: Transformer, pieces: Sequence[str], directory: Path, *, attention_layer: int = -1
) -> None:
    """Write a model directory for `ctranslate2.Translator`; `pieces` are the vocabulary in order.

    Sources must end with the EOS piece. Attention, if asked for, is the mean over the heads of the
    given decoder layer.
    """
    config = model.config
    spec = TransformerSpec.from_config(
        (config.encoder_layers, config.decoder_layers),
        config.num_heads,
        pre_norm=False,
        activation=Activation.RELU,
        alignment_layer=attention_layer,
        alignment_heads=0,
    )
    table, encodings = _array(model.embedding.weight), _array(model.position_encodings)
    for side in (spec.encoder, spec.decoder):
        side.position_encodings.encodings = encodings
    spec.encoder.embeddings[0].weight = table
    spec.decoder.embeddings.weight = table
    spec.decoder.projection.weight = table
    for target, encoder_layer in zip(spec.encoder.layer, model.encoder_layers, strict=True):
        assert isinstance(encoder_layer, EncoderLayer)
        _set_layer(target, encoder_layer)
    for target, decoder_layer in zip(spec.decoder.layer, model.decoder_layers, strict=True):
        assert isinstance(decoder_layer, DecoderLayer)
        _set_layer(target, decoder_layer)
        _set_cross_attention(target.attention, decoder_layer.cross_attention)
        _set_norm(target.attention.layer_norm, decoder_layer.cross_attention_norm)
    _register_vocabulary(spec, pieces)
    spec.validate()
    directory.mkdir(parents=True)
    spec.save(str(directory))


def _set_layer(spec: Any, layer: EncoderLayer | DecoderLayer) -> None:
    """What the layers of both sides have in common."""
    _set_self_attention(spec.self_attention, layer.self_attention)
    _set_norm(spec.self_attention.layer_norm, layer.self_attention_norm)
    feed_forward: FeedForward = layer.feed_forward
    _set_linear(spec.ffn.linear_0, feed_forward.inner_projection)
    _set_linear(spec.ffn.linear_1, feed_forward.output_projection)
    _set_norm(spec.ffn.layer_norm, layer.feed_forward_norm)


def _set_self_attention(spec: Any, attention: SelfAttention) -> None:
    _set_linear(spec.linear[0], attention.in_projection)
    _set_linear(spec.linear[1], attention.output_projection)


def _set_cross_attention(spec: Any, attention: CrossAttention) -> None:
    _set_linear(spec.linear[0], attention.query_projection)
    _set_linear(spec.linear[1], attention.key_value_projection)
    _set_linear(spec.linear[2], attention.output_projection)


def _set_linear(spec: Any, linear: nn.Linear) -> None:
    spec.weight, spec.bias = _array(linear.weight), _array(linear.bias)


def _set_norm(spec: Any, norm: nn.LayerNorm) -> None:
    spec.gamma, spec.beta = _array(norm.weight), _array(norm.bias)


def _register_vocabulary(spec: TransformerSpec, pieces: Sequence[str]) -> None:
    spec.register_source_vocabulary(list(pieces))
    spec.register_target_vocabulary(list(pieces))
    spec.config.unk_token = pieces[UNK_ID]
    spec.config.bos_token = spec.config.decoder_start_token = pieces[BOS_ID]
    spec.config.eos_token = pieces[EOS_ID]


def _array(tensor: Tensor) -> np.ndarray[Any, np.dtype[np.float32]]:
    return tensor.detach().float().numpy().copy()
