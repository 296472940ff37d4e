"""The layer that is returned is the one that looks at the word it translates."""

import torch

from export.alignment import alignment_scores, best_attention_layer
from tests.tiny_bundle import random_sources
from training.data import Example
from training.transformer import DecoderLayer, TransformerConfig

EXAMPLES = [Example(source, source) for source in random_sources(6, seed=1)]
CONFIG = TransformerConfig(
    vocabulary_size=512, model_size=32, num_heads=2, feed_forward_size=32, decoder_layers=3
)


def test_the_layer_that_looks_at_the_same_place_is_chosen() -> None:
    torch.manual_seed(0)
    model = CONFIG.build().eval()
    identity = 5 * torch.eye(CONFIG.model_size)
    with torch.no_grad():
        model.embedding.weight.mul_(0.01)  # places are all that is left to compare
        for name, parameter in model.named_parameters():
            if "output_projection" in name:
                parameter.zero_()
        for index, layer in enumerate(model.decoder_layers):
            assert isinstance(layer, DecoderLayer)
            attention = layer.cross_attention
            attention.query_projection.weight.copy_(identity * (index == 1))
            attention.key_value_projection.weight[: CONFIG.model_size] = identity
    first, same_place, last = alignment_scores(model, EXAMPLES)
    assert best_attention_layer(model, EXAMPLES) == 1
    assert same_place > 3 * max(first, last)


def test_without_shared_pieces_any_layer_will_do() -> None:
    model = CONFIG.build().eval()
    apart = [Example([4, 5, 3], [6, 7, 3])]
    assert alignment_scores(model, apart) == [0.0, 0.0, 0.0]
    assert best_attention_layer(model, apart) == 0
