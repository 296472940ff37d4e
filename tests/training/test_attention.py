"""Attention alone: masks, scoring functions, heads and position encodings."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from training.attention import (
    AdditiveAttention,
    CrossAttention,
    ScaledDotProductAttention,
    SelfAttention,
    causal_lengths,
    masked_softmax,
    sinusoidal_positions,
    valid_mask,
)


@pytest.fixture(autouse=True)
def fixed_seed() -> None:
    torch.manual_seed(0)


def test_masked_softmax_spreads_equal_scores_over_the_valid_length_of_each_row() -> None:
    weights = masked_softmax(torch.zeros(2, 1, 4), torch.tensor([2, 4]))
    assert weights.tolist() == [[[0.5, 0.5, 0, 0]], [[0.25, 0.25, 0.25, 0.25]]]


def test_masked_softmax_takes_a_length_for_each_query() -> None:
    weights = masked_softmax(torch.zeros(1, 3, 2), torch.tensor([[1, 2, 1]]))
    assert weights.tolist() == [[[1, 0], [0.5, 0.5], [1, 0]]]


def test_masked_softmax_masks_every_head_alike() -> None:
    scores, lengths = torch.randn(2, 3, 4, 5), torch.tensor([[1, 2, 3, 4], [5, 4, 3, 2]])
    weights = masked_softmax(scores, lengths)
    for head in range(3):
        torch.testing.assert_close(weights[:, head], masked_softmax(scores[:, head], lengths))


def test_masked_softmax_without_lengths_is_softmax() -> None:
    scores = torch.randn(2, 3, 4)
    torch.testing.assert_close(masked_softmax(scores, None), scores.softmax(-1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_fully_masked_row_has_finite_weights_and_gradients(dtype: torch.dtype) -> None:
    scores = torch.randn(1, 2, 3, dtype=dtype, requires_grad=True)
    weights = masked_softmax(scores, torch.tensor([0]))
    weights.square().sum().backward()
    assert scores.grad is not None
    assert weights.isfinite().all() and scores.grad.isfinite().all()
    assert weights.tolist() == pytest.approx(np.full((1, 2, 3), 1 / 3), abs=2e-3)


def test_valid_mask_counts_as_many_positions_as_the_length() -> None:
    lengths = torch.tensor([[0, 1], [3, 7]])
    assert valid_mask(lengths, 4).sum(-1).tolist() == [[0, 1], [3, 4]]


def test_additive_attention_equals_its_formula_in_numpy() -> None:
    attention = AdditiveAttention(query_size=3, key_size=5, attention_size=4)
    queries, keys, values = torch.randn(1, 2, 3), torch.randn(1, 6, 5), torch.randn(1, 6, 7)
    context, weights = attention(queries, keys, values, torch.tensor([4]))

    w, u, b, v = (p.detach().numpy() for p in attention.parameters())
    for q in range(2):
        features = np.tanh(w @ queries[0, q].numpy() + keys[0, :4].numpy() @ u.T + b)
        exponentials = np.exp(features @ v[0])
        expected = exponentials / exponentials.sum()
        np.testing.assert_allclose(weights[0, q, :4].detach(), expected, rtol=1e-5)
        np.testing.assert_allclose(
            context[0, q].detach(), expected @ values[0, :4].numpy(), rtol=1e-4, atol=1e-6
        )


def test_scaled_dot_product_attention_equals_the_fused_kernel() -> None:
    queries, keys, values = (torch.randn(2, 3, length, 8) for length in (4, 5, 5))
    lengths = torch.tensor([5, 2])
    context, _ = ScaledDotProductAttention()(queries, keys, values, lengths)
    mask = valid_mask(lengths, 5)[:, None, None]
    torch.testing.assert_close(context, F.scaled_dot_product_attention(queries, keys, values, mask))


def test_equal_keys_give_the_mean_of_the_valid_values() -> None:
    values = torch.arange(8.0).view(1, 4, 2)
    context, _ = ScaledDotProductAttention()(
        torch.randn(1, 1, 3), torch.ones(1, 4, 3), values, torch.tensor([2])
    )
    torch.testing.assert_close(context, torch.tensor([[[1.0, 2.0]]]))


def test_self_attention_equals_torch_multihead_attention_with_the_same_weights() -> None:
    ours, theirs = SelfAttention(8, 2), nn.MultiheadAttention(8, 2, batch_first=True)
    assert theirs.in_proj_weight is not None
    with torch.no_grad():
        theirs.in_proj_weight.copy_(ours.in_projection.weight)
        theirs.in_proj_bias.copy_(ours.in_projection.bias)
        theirs.out_proj.weight.copy_(ours.output_projection.weight)
        theirs.out_proj.bias.copy_(ours.output_projection.bias)
    sequence, lengths = torch.randn(2, 5, 8), torch.tensor([5, 3])
    output, weights = ours(sequence, lengths)
    padding = ~valid_mask(lengths, 5)
    expected, expected_weights = theirs(
        sequence, sequence, sequence, key_padding_mask=padding, average_attn_weights=False
    )
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(weights, expected_weights)


def test_every_head_scores_with_the_scoring_function_that_it_is_given() -> None:
    additive = AdditiveAttention(query_size=4, key_size=4, attention_size=6)
    attention = SelfAttention(8, 2, attention=additive)
    sequence, lengths = torch.randn(2, 5, 8), torch.tensor([[1, 2, 3, 4, 5], [2, 2, 2, 2, 2]])
    _, weights = attention(sequence, lengths)
    query, key, value = attention.in_projection(sequence).chunk(3, -1)
    for head in range(2):
        part = slice(4 * head, 4 * head + 4)
        _, expected = additive(query[..., part], key[..., part], value[..., part], lengths)
        torch.testing.assert_close(weights[:, head], expected)


def test_cross_attention_of_a_sequence_to_itself_is_self_attention() -> None:
    within, across = SelfAttention(8, 2), CrossAttention(8, 2)
    across.query_projection.weight.data, across.query_projection.bias.data = (
        parameter.data[:8] for parameter in within.in_projection.parameters()
    )
    across.key_value_projection.weight.data, across.key_value_projection.bias.data = (
        parameter.data[8:] for parameter in within.in_projection.parameters()
    )
    across.output_projection = within.output_projection
    sequence, lengths = torch.randn(2, 5, 8), torch.tensor([5, 3])
    expected, _ = within(sequence, lengths)
    output, _ = across(sequence, *across.project_memory(sequence), lengths)
    torch.testing.assert_close(output, expected)


def test_causal_lengths_hide_the_future_and_show_the_past() -> None:
    attention, sequence = SelfAttention(8, 2), torch.randn(1, 4, 8)
    changed = sequence.clone()
    changed[:, 2] += 1
    before, _ = attention(sequence, causal_lengths(4))
    after, _ = attention(changed, causal_lengths(4))
    differs = (before - after).abs().amax(-1)[0] > 1e-6
    assert differs.tolist() == [False, False, True, True]


def test_heads_that_do_not_divide_the_model_size_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="model_size is 10, not a multiple of num_heads 4"):
        SelfAttention(10, 4)


def test_position_encodings_interleave_sines_and_cosines() -> None:
    encodings = sinusoidal_positions(max_positions=50, size=4)
    torch.testing.assert_close(encodings[0], torch.tensor([0.0, 1.0, 0.0, 1.0]))
    angles = torch.tensor([7.0, 0.07])
    torch.testing.assert_close(encodings[7, 0::2], angles.sin())
    torch.testing.assert_close(encodings[7, 1::2], angles.cos())


def test_the_product_of_two_position_encodings_depends_on_their_distance_alone() -> None:
    encodings = sinusoidal_positions(max_positions=100, size=16)
    products = encodings @ encodings.T
    for distance in (0, 3, 40):
        diagonal = products.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal))
