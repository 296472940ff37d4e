"""What the chapter says of the Transformer's blocks: masks, two ways to predict, norms, paths."""

import pytest
import torch
from torch import nn

from docs.chapter.blocks import (
    SIZE,
    LayerNorm,
    change_by_padding,
    cut_residual_paths,
    in_parallel,
    influence,
    spread_by_position,
    step_by_step,
)
from docs.chapter.heads import head_weights
from docs.chapter.sentence import Example
from tests.tiny_transformer import CONFIG
from training.attention import causal_lengths
from training.transformer import EncoderLayer, FeedForward, Transformer


@pytest.fixture(autouse=True)
def fixed_seed() -> None:
    torch.manual_seed(0)


@pytest.fixture
def network() -> Transformer:
    return CONFIG.build().eval()


@pytest.fixture
def shown() -> Example:
    source, target = torch.tensor([[5, 9, 7, 3]]), torch.tensor([[2, 11, 6, 20, 8]])
    return Example(source, target, tuple("abcd"), tuple("vwxyz"))


def test_changing_a_later_token_changes_no_earlier_prediction(
    network: Transformer, shown: Example
) -> None:
    changes = influence(network, shown)
    assert changes.triu(1).count_nonzero() == 0
    assert changes[changes.tril() > 0].numel() == 15


def test_predicting_in_parallel_and_step_by_step_gives_the_same_distributions(
    network: Transformer, shown: Example
) -> None:
    parallel = in_parallel(network, shown)
    torch.testing.assert_close(step_by_step(network, shown), parallel, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(parallel.exp().sum(-1), torch.ones(5))


def test_the_feed_forward_block_is_two_convolutions_of_width_1() -> None:
    block, hidden = FeedForward(8, 20), torch.randn(2, 5, 8)
    inner, outer = nn.Conv1d(8, 20, kernel_size=1), nn.Conv1d(20, 8, kernel_size=1)
    for convolution, linear in (
        (inner, block.inner_projection),
        (outer, block.output_projection),
    ):
        convolution.weight.data = linear.weight.data.unsqueeze(-1)
        assert convolution.bias is not None
        convolution.bias.data = linear.bias.data
    torch.testing.assert_close(block(hidden), outer(inner(hidden.mT).relu()).mT)


def test_the_feed_forward_block_gives_equal_positions_the_same() -> None:
    output = FeedForward(8, 20)(torch.ones(2, 3, 8))
    torch.testing.assert_close(output, output[:1, :1].expand(2, 3, 8))


def test_padding_changes_what_batch_norm_makes_of_words_and_not_what_layer_norm_does() -> None:
    assert change_by_padding(LayerNorm(SIZE), padded=20) == 0
    changes = [change_by_padding(nn.BatchNorm1d(SIZE), padded) for padded in (5, 10, 20)]
    assert changes[0] == 0 and 0.3 < changes[1] < changes[2]


def test_batch_norm_leaves_nothing_of_a_sentence_that_is_alone_at_a_position() -> None:
    left = spread_by_position(nn.BatchNorm1d(SIZE))
    assert left[0].item() == pytest.approx(1, abs=1e-3)
    assert left[-1].item() == pytest.approx(0, abs=1e-6)
    assert spread_by_position(LayerNorm(SIZE)).tolist() == pytest.approx([1] * 24, abs=1e-3)


def test_a_layer_whose_paths_are_cut_norms_its_sublayers_outputs_alone() -> None:
    layer, hidden, lengths = (
        EncoderLayer(CONFIG).eval(),
        torch.randn(2, 5, 16),
        torch.tensor([5, 3]),
    )
    attended = layer.self_attention_norm(layer.self_attention(hidden, lengths)[0])
    expected = layer.feed_forward_norm(layer.feed_forward(attended))
    assert not torch.allclose(layer(hidden, lengths), expected)
    cut_residual_paths(layer)
    torch.testing.assert_close(layer(hidden, lengths), expected, atol=1e-5, rtol=1e-4)


def test_the_recorded_weights_are_those_of_the_networks_own_heads(
    network: Transformer, shown: Example
) -> None:
    hidden = network.embedding(shown.target_ids) + network.position_encodings[:5]
    attention = network.decoder_layers[0].get_submodule("self_attention")
    _, weights = attention(hidden, causal_lengths(5))
    recorded = head_weights(network, "decoder", "self_attention", shown)
    assert recorded.shape == (3, 2, 5, 5)
    torch.testing.assert_close(recorded[0], weights[0])


def test_a_sentences_heads_are_distributions_over_its_keys(
    network: Transformer, shown: Example
) -> None:
    weights = head_weights(network, "decoder", "cross_attention", shown)
    assert weights.shape == (3, 2, 5, 4)
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 2, 5))


def test_recording_leaves_no_trace_in_the_network(network: Transformer, shown: Example) -> None:
    head_weights(network, "encoder", "self_attention", shown)
    assert not any(module._forward_hooks for module in network.modules())
