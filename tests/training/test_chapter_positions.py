"""What the chapter says of sequences and positions, against counting and independent formulas."""

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from docs.chapter.positions import (
    KERNEL,
    SIZE,
    binary_digits,
    distances_after,
    frequencies,
    layers,
    longest_paths,
    multiplications,
    rotation_matrix,
)
from training.attention import SelfAttention, sinusoidal_positions


@pytest.fixture(autouse=True)
def fixed_seed() -> None:
    torch.manual_seed(0)


def reached(layer: nn.Module, length: int) -> int:
    """How many such layers it takes until the last output depends on the first input."""
    first = torch.zeros(1, 1, length, dtype=torch.float64)
    first[..., 0] = 1
    for count in range(1, length + 1):
        first = layer(first)
        if first[..., -1].count_nonzero():
            return count
    raise AssertionError("never")


@pytest.mark.parametrize("length", [2, 7, 8, 30])
def test_as_many_convolutions_as_told_lead_from_the_first_position_to_the_last(
    length: int,
) -> None:
    convolution = nn.Conv1d(1, 1, KERNEL, padding=KERNEL // 2, bias=False).double()
    nn.init.ones_(convolution.weight)
    assert reached(convolution, length) == longest_paths(length)[0]


def test_one_layer_of_self_attention_leads_from_each_position_to_each() -> None:
    sequence = torch.randn(1, 9, 8, requires_grad=True)
    output, _ = SelfAttention(8, 2)(sequence, None)
    output[0, -1].sum().backward()
    assert sequence.grad is not None
    assert sequence.grad[0].abs().amax(-1).min() > 0


def flops(layer: nn.Module, *inputs: object) -> int:
    """Multiplications and additions, as torch counts them."""
    with FlopCounterMode(display=False) as counter:
        layer(*inputs)
    total: int = counter.get_total_flops()
    return total


def test_a_convolution_costs_as_many_multiplications_as_the_chapter_says() -> None:
    convolution, _, _ = layers()
    assert flops(convolution, torch.randn(1, SIZE, 50)) == 2 * multiplications(50)[0]


def test_self_attention_costs_the_square_of_the_length_beside_its_projections() -> None:
    *_, attention = layers()
    short, long = (flops(attention, torch.randn(1, length, SIZE), None) for length in (50, 100))
    projections = 4 * 2 * SIZE**2
    # Scores are one product of that cost, contexts another.
    assert short - 50 * projections == 2 * 2 * multiplications(50)[2]
    assert long - 100 * projections == 2 * 2 * multiplications(100)[2]


def test_each_pair_of_columns_turns_at_its_frequency() -> None:
    turned = frequencies(sinusoidal_positions(2, 32))
    expected = [10_000 ** (-column / 32) for column in range(0, 32, 2)]
    assert turned.tolist() == pytest.approx(expected, rel=1e-5)


def test_binary_digits_are_those_that_python_writes() -> None:
    digits = binary_digits(20, 5)
    for number in range(20):
        assert "".join(str(d) for d in reversed(digits[number].tolist())) == f"{number:05b}"


@pytest.mark.parametrize("offset", [-3, 0, 1, 17, 400])
def test_one_rotation_turns_every_position_into_the_one_that_far_away(offset: int) -> None:
    encodings = sinusoidal_positions(1000, 32)
    rotation = rotation_matrix(offset, 32)
    torch.testing.assert_close(rotation @ rotation.T, torch.eye(32))
    start, end = max(0, -offset), 1000 - max(0, offset)
    turned = encodings[start:end] @ rotation.T
    torch.testing.assert_close(turned, encodings[start + offset : end + offset], atol=1e-4, rtol=0)


@pytest.fixture
def order() -> Tensor:
    return torch.tensor([3, 0, 4, 1, 2])


def test_without_positions_another_order_gives_the_same_in_that_order(order: Tensor) -> None:
    attention, sequence = SelfAttention(16, 2), torch.randn(1, 5, 16)
    output, weights = attention(sequence, None)
    reordered, reordered_weights = attention(sequence[:, order], None)
    torch.testing.assert_close(reordered, output[:, order])
    torch.testing.assert_close(reordered_weights, weights[:, :, order][..., order])


def test_with_positions_another_order_gives_something_else_at_every_place(order: Tensor) -> None:
    places = torch.arange(5)
    assert distances_after(order, positions=False)[order, places].max() < 1e-5
    assert distances_after(order, positions=True)[order, places].min() > 0.5
