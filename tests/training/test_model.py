"""What every translator promises to those who train, search and export it."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from training.model import StepOutput, TensorSpec, Translator, build_model

VOCABULARY_SIZE = 23
TRANSFORMER = {
    "architecture": "transformer",
    "model_size": 16,
    "num_heads": 2,
    "feed_forward_size": 24,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "max_positions": 32,
}
BAHDANAU = {
    "architecture": "bahdanau",
    "embedding_size": 12,
    "encoder_size": 8,
    "decoder_size": 10,
    "attention_size": 6,
}
CONFIGS: dict[str, dict[str, Any]] = {
    "transformer": TRANSFORMER,
    "bahdanau": BAHDANAU,
    "bahdanau, deep": BAHDANAU | {"encoder_layers": 2, "decoder_layers": 3},
    "bahdanau, one direction": BAHDANAU | {"bidirectional": False},
    "bahdanau, no attention": BAHDANAU | {"attention": False},
}


@pytest.fixture(params=CONFIGS)
def model(request: pytest.FixtureRequest) -> Translator:
    torch.manual_seed(0)
    return build_model(CONFIGS[request.param] | {"vocabulary_size": VOCABULARY_SIZE}).eval()


@pytest.fixture(autouse=True)
def no_gradients_unless_asked() -> Any:
    with torch.no_grad():
        yield


SOURCE = torch.tensor([[3, 4, 5, 6, 7], [8, 9, 10, 0, 0], [11, 0, 0, 0, 0]])
SOURCE_LENGTHS = torch.tensor([5, 3, 1])
TARGET = torch.tensor([[1, 12, 13, 14], [1, 15, 16, 17], [1, 18, 19, 20]])


def step_through(
    model: Translator, source: Tensor, source_lengths: Tensor, target: Tensor
) -> list[StepOutput]:
    """Every step's output, when row i is fed the tokens of target[i]."""
    memory, state = model.encode(source, source_lengths)
    outputs = []
    for position in range(target.size(1)):
        positions = torch.full((len(target),), position, dtype=torch.int32)
        tokens = target[:, position : position + 1]
        outputs.append(model.step(tokens, positions, source_lengths, memory, state))
        state = outputs[-1].state
    return outputs


def test_stepping_gives_the_logits_of_the_training_forward(model: Translator) -> None:
    outputs = step_through(model, SOURCE, SOURCE_LENGTHS, TARGET)
    stepped = torch.stack([output.logits for output in outputs], dim=1)
    torch.testing.assert_close(stepped, model(SOURCE, SOURCE_LENGTHS, TARGET))


def test_a_row_of_a_ragged_batch_equals_the_row_alone(model: Translator) -> None:
    together = model(SOURCE, SOURCE_LENGTHS, TARGET)
    for row, length in enumerate(SOURCE_LENGTHS):
        one = slice(row, row + 1)
        alone = model(SOURCE[one, :length], SOURCE_LENGTHS[one], TARGET[one])
        torch.testing.assert_close(together[one], alone)


def test_what_stands_in_the_padding_changes_nothing(model: Translator) -> None:
    padded = torch.where(SOURCE == 0, 22, SOURCE)
    torch.testing.assert_close(
        model(padded, SOURCE_LENGTHS, TARGET),
        model(SOURCE, SOURCE_LENGTHS, TARGET),
        rtol=0,
        atol=0,
    )


def test_a_later_target_token_does_not_change_an_earlier_prediction(model: Translator) -> None:
    changed = TARGET.clone()
    changed[:, 2:] = 21
    torch.testing.assert_close(
        model(SOURCE, SOURCE_LENGTHS, changed)[:, :2],
        model(SOURCE, SOURCE_LENGTHS, TARGET)[:, :2],
    )


def test_the_beams_of_a_sentence_equal_separate_rows(model: Translator) -> None:
    num_beams = 3
    memory, state = model.encode(SOURCE, SOURCE_LENGTHS)
    state = tuple(tensor.repeat_interleave(num_beams, 0) for tensor in state)
    row_memory = tuple(tensor.repeat_interleave(num_beams, 0) for tensor in memory)
    row_lengths, row_state = SOURCE_LENGTHS.repeat_interleave(num_beams), state
    for position in range(3):
        tokens = torch.randint(3, VOCABULARY_SIZE, (len(SOURCE), num_beams))
        positions = torch.full((tokens.numel(),), position, dtype=torch.int32)
        beams = model.step(tokens, positions, SOURCE_LENGTHS, memory, state)
        rows = model.step(tokens.view(-1, 1), positions, row_lengths, row_memory, row_state)
        torch.testing.assert_close(beams.logits, rows.logits)
        torch.testing.assert_close(beams.attention, rows.attention)
        state, row_state = beams.state, rows.state


def test_rows_at_different_positions_share_a_step(model: Translator) -> None:
    memory, newcomer = model.encode(SOURCE[:2], SOURCE_LENGTHS[:2])
    apart = step_through(model, SOURCE[:2], SOURCE_LENGTHS[:2], TARGET[:2])
    # Row 1 starts anew, on top of what the sentence before it left in the caches.
    state = tuple(
        old if "target" in spec.axes else torch.stack((old[0], new[1]))
        for spec, old, new in zip(model.state_specs, apart[1].state, newcomer, strict=True)
    )
    tokens = torch.stack((TARGET[0, 2:3], TARGET[1, 0:1]))
    positions = torch.tensor([2, 0], dtype=torch.int32)
    mixed = model.step(tokens, positions, SOURCE_LENGTHS[:2], memory, state)
    torch.testing.assert_close(mixed.logits[0], apart[2].logits[0])
    torch.testing.assert_close(mixed.logits[1], apart[0].logits[1])


def test_attention_sums_to_one_over_real_source_tokens(model: Translator) -> None:
    for output in step_through(model, SOURCE, SOURCE_LENGTHS, TARGET):
        padding = (SOURCE == 0).unsqueeze(1).expand_as(output.attention)
        assert (output.attention[padding] == 0).all()
        torch.testing.assert_close(output.attention.sum(-1), torch.ones(output.attention.shape[:2]))


def test_a_step_leaves_the_state_it_was_given_as_it_was(model: Translator) -> None:
    memory, _ = model.encode(SOURCE, SOURCE_LENGTHS)
    state = step_through(model, SOURCE, SOURCE_LENGTHS, TARGET)[1].state
    before = tuple(tensor.clone() for tensor in state)
    positions = torch.ones(3, dtype=torch.int32)
    model.step(TARGET[:, 2:3], positions, SOURCE_LENGTHS, memory, state)
    for old, kept in zip(before, state, strict=True):
        assert torch.equal(old, kept)


def test_memory_and_state_have_the_axes_of_their_specs(model: Translator) -> None:
    memory, _ = model.encode(SOURCE, SOURCE_LENGTHS)
    state = step_through(model, SOURCE, SOURCE_LENGTHS, TARGET[:, :2])[-1].state
    sizes = {"sentence": 3, "sentence * beam": 3, "source": 5, "target": 2}

    def shape(spec: TensorSpec) -> tuple[int, ...]:
        return tuple(sizes[axis] if isinstance(axis, str) else axis for axis in spec.axes)

    assert [shape(spec) for spec in model.memory_specs] == [m.shape for m in memory]
    assert [shape(spec) for spec in model.state_specs] == [s.shape for s in state]
    names = [spec.name for spec in model.memory_specs + model.state_specs]
    assert len(set(names)) == len(names)


def test_a_model_is_rebuilt_from_its_config_and_its_weights(model: Translator) -> None:
    rebuilt = build_model(model.config_dict()).eval()
    rebuilt.load_state_dict(model.state_dict())
    arguments = (SOURCE, SOURCE_LENGTHS, TARGET)
    assert torch.equal(rebuilt(*arguments), model(*arguments))


def test_training_under_bfloat16_autocast_learns_three_sentences(model: Translator) -> None:
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    with torch.enable_grad():
        for _ in range(60):
            with torch.autocast("cpu", torch.bfloat16):
                features = model.decoder_features(SOURCE, SOURCE_LENGTHS, TARGET[:, :-1])
                logits = model.output_layer(features)
            loss = F.cross_entropy(logits.float().flatten(0, 1), TARGET[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert all(parameter.isfinite().all() for parameter in model.parameters())
    assert losses[-1] < 0.5 * losses[0]


def test_autocast_changes_logits_by_no_more_than_its_precision(model: Translator) -> None:
    with torch.autocast("cpu", torch.bfloat16):
        rounded = model(SOURCE, SOURCE_LENGTHS, TARGET)
    torch.testing.assert_close(
        rounded.float(), model(SOURCE, SOURCE_LENGTHS, TARGET), rtol=0.05, atol=0.08
    )


def test_logits_of_a_new_model_are_near_a_uniform_guess(model: Translator) -> None:
    log_probs = model(SOURCE, SOURCE_LENGTHS, TARGET).log_softmax(-1)
    assert log_probs.min() > -9


def test_an_unknown_architecture_is_refused_with_the_choices() -> None:
    with pytest.raises(ValueError, match="'rnn'; choose one of transformer, bahdanau"):
        build_model({"architecture": "rnn", "vocabulary_size": 9})


def test_unknown_and_missing_fields_are_named_together() -> None:
    with pytest.raises(ValueError, match="unknown heads; missing vocabulary_size"):
        build_model({"architecture": "transformer", "heads": 4})


@pytest.mark.parametrize("value", [0, -1, 2.0, "16", True, None])
def test_a_size_that_is_no_positive_integer_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="vocabulary_size is .* at least 1"):
        build_model({"architecture": "bahdanau", "vocabulary_size": value})


def test_every_field_out_of_range_is_named() -> None:
    config = BAHDANAU | {"vocabulary_size": 9, "dropout": 1.0, "bidirectional": 1}
    with pytest.raises(ValueError, match=r"bidirectional is 1, .*dropout is 1\.0, "):
        build_model(config)
