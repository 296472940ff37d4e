"""What is the Transformer's alone: its layers, its caches, its heads."""

import pytest
import torch
from torch import Tensor, nn

from tests.tiny_transformer import CONFIG
from training.attention import valid_mask
from training.cached_attention import CachedAttention
from training.transformer import EncoderLayer, Transformer


@pytest.fixture(autouse=True)
def fixed_seed() -> None:
    torch.manual_seed(0)


@pytest.fixture
def model() -> Transformer:
    return CONFIG.build().eval()


def copy_layer(ours: EncoderLayer, theirs: nn.TransformerEncoderLayer) -> None:
    """Give PyTorch's own layer our weights."""
    pairs: list[tuple[nn.Module, nn.Module]] = [
        (ours.self_attention.output_projection, theirs.self_attn.out_proj),
        (ours.self_attention_norm, theirs.norm1),
        (ours.feed_forward.inner_projection, theirs.linear1),
        (ours.feed_forward.output_projection, theirs.linear2),
        (ours.feed_forward_norm, theirs.norm2),
    ]
    for source, copy in pairs:
        copy.load_state_dict(source.state_dict())
    theirs.self_attn.in_proj_weight.data = ours.self_attention.in_projection.weight.data
    theirs.self_attn.in_proj_bias.data = ours.self_attention.in_projection.bias.data


def test_an_encoder_layer_equals_the_post_norm_layer_of_torch() -> None:
    ours = EncoderLayer(CONFIG)
    theirs = nn.TransformerEncoderLayer(16, 2, 24, dropout=0.0, batch_first=True)
    copy_layer(ours, theirs)
    hidden, lengths = torch.randn(2, 5, 16), torch.tensor([5, 3])
    mask = valid_mask(lengths, 5)
    expected = theirs(hidden, src_key_padding_mask=~mask)
    torch.testing.assert_close(ours(hidden, lengths)[mask], expected[mask])


def test_source_target_and_output_share_one_embedding(model: Transformer) -> None:
    tables = [name for name, p in model.named_parameters() if CONFIG.vocabulary_size in p.shape]
    assert tables == ["embedding.weight"]


def test_attention_holds_the_heads_of_all_layers_in_layer_order(model: Transformer) -> None:
    lengths, positions = torch.tensor([4]), torch.zeros(1, dtype=torch.int32)
    memory, state = model.encode(torch.tensor([[3, 4, 5, 6]]), lengths)
    # A key of zero in a layer makes that layer's heads, and no earlier ones, uniform.
    blank = (*memory[:2], torch.zeros_like(memory[2]), *memory[3:])
    attention = model.step(torch.tensor([[1]]), positions, lengths, blank, state).attention
    uniform = (attention[0] - 0.25).abs().amax(-1) < 1e-6
    assert uniform.tolist() == [False, False, True, True, False, False]


def written(capacity: int, positions: list[int]) -> tuple[Tensor, Tensor]:
    """Context and key cache after one token at each position, with noise in the caches before."""
    generator = torch.Generator().manual_seed(1)
    cache = torch.randn(len(positions), 2, 8, 4, generator=generator)[:, :, :capacity]
    projected = torch.randn(len(positions), 24, generator=generator)
    context, keys, _ = CachedAttention(2)(projected, torch.tensor(positions), cache, cache)
    return context, keys


def test_a_cache_is_written_at_each_rows_position_and_nowhere_else() -> None:
    _, first = written(8, [0, 5])
    _, second = written(8, [3, 5])
    changed = (first - second).abs().amax((1, 3)) > 0
    assert changed.nonzero().tolist() == [[0, 0], [0, 3]]


def test_what_lies_after_a_position_in_a_cache_is_never_read() -> None:
    context, _ = written(8, [2, 3])
    smaller, _ = written(4, [2, 3])
    torch.testing.assert_close(context, smaller)


def test_a_full_cache_grows_and_keeps_what_it_holds() -> None:
    context, keys = written(4, [4, 2])
    assert keys.size(2) == 8
    roomy_context, roomy_keys = written(8, [4, 2])
    torch.testing.assert_close(context, roomy_context)
    torch.testing.assert_close(keys[:, :, :4], roomy_keys[:, :, :4])


def test_a_sentence_beyond_the_position_encodings_is_refused(model: Transformer) -> None:
    ids, lengths = torch.full((1, 13), 3), torch.tensor([13])
    with pytest.raises(IndexError):
        model.encode(ids, lengths)


def test_the_order_of_the_source_matters(model: Transformer) -> None:
    target = torch.tensor([[1, 5]])
    forwards = model(torch.tensor([[3, 4, 5]]), torch.tensor([3]), target)
    backwards = model(torch.tensor([[5, 4, 3]]), torch.tensor([3]), target)
    assert not torch.allclose(forwards, backwards)
