"""What is the recurrent translator's alone: its encoder, its recurrence, its attention."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from training.bahdanau import Bahdanau, BahdanauConfig, RaggedEncoder, RecurrentStep

CONFIG = BahdanauConfig(
    vocabulary_size=23,
    embedding_size=12,
    encoder_size=8,
    encoder_layers=2,
    decoder_size=10,
    decoder_layers=2,
    attention_size=6,
    dropout=0.0,
)


@pytest.fixture(autouse=True)
def fixed_seed() -> None:
    torch.manual_seed(0)


@pytest.fixture
def model() -> Bahdanau:
    return CONFIG.build().eval()


def test_the_spelled_out_recurrence_equals_the_gru_cell_of_torch() -> None:
    cell, step = nn.GRUCell(5, 4), RecurrentStep(4)
    step.hidden_projection.weight, step.hidden_projection.bias = cell.weight_hh, cell.bias_hh
    inputs, hidden = torch.randn(3, 5), torch.randn(3, 4)
    projected = nn.functional.linear(inputs, cell.weight_ih, cell.bias_ih)
    torch.testing.assert_close(step(projected, hidden), cell(inputs, hidden))


def test_a_ragged_row_is_encoded_as_torch_encodes_it_alone() -> None:
    encoder = RaggedEncoder(CONFIG)
    embedded, lengths = torch.randn(3, 6, 12), torch.tensor([2, 6, 1])
    outputs, final = encoder(embedded, lengths)
    for row, length in enumerate(lengths):
        alone, finals = encoder.gru(embedded[row : row + 1, :length])
        torch.testing.assert_close(outputs[row, :length], alone[0])
        torch.testing.assert_close(final[row], torch.cat((finals[-2, 0], finals[-1, 0])))


def test_encoder_outputs_are_zero_at_padding() -> None:
    outputs, _ = RaggedEncoder(CONFIG)(torch.randn(2, 5, 12), torch.tensor([5, 3]))
    assert (outputs[1, 3:] == 0).all()
    assert outputs[1, :3].all()


def test_the_batch_keeps_the_width_it_was_padded_to() -> None:
    outputs, _ = RaggedEncoder(CONFIG)(torch.randn(2, 5, 12), torch.tensor([2, 3]))
    assert outputs.shape == (2, 5, 16)


def test_attention_is_decided_by_the_previous_hidden_state_and_not_by_the_input(
    model: Bahdanau,
) -> None:
    lengths, positions = torch.tensor([4]), torch.zeros(1, dtype=torch.int32)
    memory, state = model.encode(torch.tensor([[3, 4, 5, 6]]), lengths)

    def attention(token: int, hidden: tuple[Tensor, ...]) -> Tensor:
        tokens = torch.tensor([[token]])
        return model.step(tokens, positions, lengths, memory, hidden).attention

    assert torch.equal(attention(7, state), attention(8, state))
    other_top = (state[0], state[1] + 1)
    assert not torch.allclose(attention(7, state), attention(7, other_top))


def test_without_attention_every_step_sees_the_final_state_of_the_encoder() -> None:
    model = replace(CONFIG, attention=False).build().eval()
    source, lengths = torch.tensor([[3, 4, 5, 6], [7, 8, 0, 0]]), torch.tensor([4, 2])
    _, final = model.encoder(model.embedding(source), lengths)
    memory, state = model.encode(source, lengths)
    for hidden in (state, tuple(layer.flip(0) + 1 for layer in state)):
        projected = torch.zeros(2, 3 * CONFIG.decoder_size)
        _, context, weights = model.decoder.advance(projected, hidden, memory, lengths)
        torch.testing.assert_close(context, final)
        torch.testing.assert_close(weights[1], torch.tensor([0.5, 0.5, 0.0, 0.0]))


def test_the_initial_state_of_every_layer_is_bounded_and_its_own(model: Bahdanau) -> None:
    _, state = model.encode(torch.tensor([[3, 4, 5]]), torch.tensor([3]))
    assert [tuple(hidden.shape) for hidden in state] == [(1, 10), (1, 10)]
    assert all((hidden.abs() < 1).all() for hidden in state)
    assert not torch.equal(*state)


def test_recurrent_weights_start_orthogonal(model: Bahdanau) -> None:
    recurrent = ("gru.weight_hh", "hidden_projection.weight")
    weights = [w for name, w in model.named_parameters() if any(part in name for part in recurrent)]
    assert len(weights) == 2 * 2 + 2  # layers x directions of the encoder, layers of the decoder
    for weight in weights:
        for gate in weight.detach().chunk(3):
            torch.testing.assert_close(gate @ gate.T, torch.eye(len(gate)))


def test_under_autocast_the_recurrence_stays_in_float32(model: Bahdanau) -> None:
    lengths, positions = torch.tensor([3]), torch.zeros(1, dtype=torch.int32)
    with torch.autocast("cpu", torch.bfloat16):
        memory, state = model.encode(torch.tensor([[3, 4, 5]]), lengths)
        output = model.step(torch.tensor([[1]]), positions, lengths, memory, state)
    assert {hidden.dtype for hidden in state + output.state} == {torch.float32}


def test_one_direction_halves_the_memory() -> None:
    both = CONFIG.memory_size
    assert BahdanauConfig(23, encoder_size=8, bidirectional=False).memory_size == both // 2
