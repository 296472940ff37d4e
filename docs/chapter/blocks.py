"""The Transformer's blocks: the causal mask, two ways to predict, norms and residual paths."""

from typing import cast

import torch
from torch import Tensor, nn

from docs.chapter.figure import Figure, Number, Run
from docs.chapter.sentence import Example, example
from training import plots
from training.transformer import EncoderLayer, Transformer, TransformerConfig
from training.vocabulary import UNK_ID

SIZE = 64
LAYERS = 12
LENGTHS = torch.tensor([3, 4, 4, 5, 6, 7, 8, 10, 12, 15, 19, 24])
PADDED = (5, 6, 8, 10, 15, 20, 30, 40)


@torch.no_grad()
def influence(network: Transformer, shown: Example) -> Tensor:
    """How much another token at place j changes the prediction after place i: (target, target).

    Total variation between both distributions of the next token, from 0 to 1.
    """

    def predictions(target_ids: Tensor) -> Tensor:
        logits: Tensor = network(shown.source_ids, shown.source_lengths, target_ids)
        return logits[0].softmax(-1)

    before, columns = predictions(shown.target_ids), []
    for place in range(shown.target_ids.size(1)):
        changed = shown.target_ids.clone()
        changed[0, place] = UNK_ID
        columns.append((predictions(changed) - before).abs().sum(-1) / 2)
    return torch.stack(columns, dim=1)


def causal_mask(run: Run) -> Figure:
    """Which earlier tokens a prediction depends on."""
    shown = example(run.served)
    changes = influence(run.served.network, shown)
    picture, axes = plots.canvas(height=3.8)
    plots.heatmap(
        axes[0],
        changes,
        xlabel="token that is replaced",
        ylabel="prediction after token",
        columns=shown.target_pieces,
        rows=shown.target_pieces,
        bar="change of the prediction",
    )
    plots.write_cells(axes[0], changes)
    caption = (
        "Replacing a token of the target changes the predictions after it and on, and exactly "
        "nothing before it (served Transformer; change: total variation, 0 to 1)."
    )
    numbers = {
        "largest_change_before": changes.triu(1).max().item(),
        "largest_change_after": changes.tril().max().item(),
    }
    return Figure(picture, caption, numbers)


@torch.no_grad()
def in_parallel(network: Transformer, shown: Example) -> Tensor:
    """Log-probabilities (target, vocabulary) as in training: all positions at once."""
    logits: Tensor = network(shown.source_ids, shown.source_lengths, shown.target_ids)[0]
    return logits.log_softmax(-1)


@torch.no_grad()
def step_by_step(network: Transformer, shown: Example) -> Tensor:
    """The same as in serving: one token after the other, over the cached keys and values."""
    memory, state = network.encode(shown.source_ids, shown.source_lengths)
    rows = []
    for place, token in enumerate(shown.target_ids[0]):
        position = torch.tensor([place], dtype=torch.int32)
        output = network.step(token.view(1, 1), position, shown.source_lengths, memory, state)
        state = output.state
        rows.append(output.logits[0].log_softmax(-1))
    return torch.stack(rows)


def parallel_and_stepwise(run: Run) -> Figure:
    """How probable the translation's tokens are, computed in both ways."""
    shown = example(run.served)
    parallel, stepwise = (way(run.served.network, shown) for way in (in_parallel, step_by_step))
    pieces = [*shown.target_pieces[1:], "</s>"]
    next_ids = torch.cat((shown.target_ids[0, 1:], parallel[-1:].argmax(-1)))
    first, second = (way.gather(1, next_ids.unsqueeze(1)).flatten() for way in (parallel, stepwise))
    picture, axes = plots.canvas(columns=2, height=3.0)
    places = range(len(pieces))
    axes[0].bar(places, first.exp().tolist(), color=plots.SKY, label="in parallel")
    axes[0].plot(places, second.exp().tolist(), "o", color=plots.RED, label="step by step")
    axes[0].set_ylim(0, 1.35)
    axes[0].legend(loc="upper center", ncols=2)
    plots.label(axes[0], xlabel="token", ylabel="probability")
    gaps = (parallel - stepwise).abs().amax(-1)
    axes[1].bar(places, gaps.tolist(), color=plots.SKY)
    axes[1].set_yscale("log")
    axes[1].set_ylim(1e-8, 1)
    plots.label(axes[1], xlabel="token", ylabel="largest difference (nats)")
    for place in axes:
        place.set_xticks(places, pieces, rotation=90, parse_math=False)
    caption = (
        "The same translation scored in parallel, as in training, and step by step, as in serving: "
        "over the whole vocabulary they differ by the rounding of float32."
    )
    numbers = {"log_probs": first.tolist()}
    return Figure(picture, caption, numbers, {"largest_difference": gaps.max().item()})


@torch.no_grad()
def change_by_padding(norm: nn.Module, padded: int) -> float:
    """How much a sentence of 5 positions changes when its batch is padded to that length.

    Root mean square against the batch without padding. `norm` takes (batch, size, length).
    """
    sentences = torch.randn(4, SIZE, 5, generator=torch.Generator().manual_seed(0)) + 1.0
    with_padding = nn.functional.pad(sentences, (0, padded - 5))
    change: Tensor = norm(with_padding)[:, :, :5] - norm(sentences)
    return change.square().mean().sqrt().item()


class LayerNorm(nn.LayerNorm):
    """Over the channels of (batch, size, length), as the Transformer normalises each position."""

    def forward(self, sequence: Tensor) -> Tensor:
        return super().forward(sequence.mT).mT


@torch.no_grad()
def spread_by_position(norm: nn.Module) -> Tensor:
    """Root mean square of what a norm leaves of each position's valid values, (longest,).

    The norm sees a position of all sentences that reach it; where only one does, it sees that one.
    """
    longest = int(LENGTHS.max())
    values = torch.randn(len(LENGTHS), SIZE, longest, generator=torch.Generator().manual_seed(0))
    left = []
    for place in range(longest):
        reached = values[LENGTHS > place, :, place : place + 1]
        # Batch norm refuses a batch of one value in training; eps alone decides what is left.
        twice = reached if len(reached) > 1 else reached.expand(2, -1, -1)
        left.append(norm(twice).square().mean().sqrt())
    return torch.stack(left)


def layer_and_batch_norm(run: Run) -> Figure:
    """What padding and uneven lengths do to batch norm, and don't to layer norm."""
    norms = {"batch norm": nn.BatchNorm1d(SIZE), "layer norm": LayerNorm(SIZE)}
    changes = {
        name: [change_by_padding(norm, padded) for padded in PADDED] for name, norm in norms.items()
    }
    left = {name: spread_by_position(norm).tolist() for name, norm in norms.items()}
    picture, axes = plots.canvas(columns=2, height=3.1)
    plots.lines(
        axes[0],
        PADDED,
        changes,
        xlabel="positions in the batch, 5 of them words",
        ylabel="change of the words (RMS)",
        marker="o",
    )
    places = range(1, int(LENGTHS.max()) + 1)
    plots.lines(axes[1], places, left, xlabel="position", ylabel="values after the norm (RMS)")
    axes[1].set_ylim(-0.05, 1.45)
    axes[1].legend(loc="lower left")
    caption = (
        "Left: more padding in the batch changes what batch norm makes of the same words. Right: "
        "12 sentences of 3 to 24 words; where one is left alone, batch norm leaves nothing of it."
    )
    numbers = {
        "batch_norm_change": changes["batch norm"],
        "layer_norm_change": max(changes["layer norm"]),
        "batch_norm_alone": left["batch norm"][-1],
        "layer_norm_alone": left["layer norm"][-1],
    }
    return Figure(picture, caption, numbers)


def cut_residual_paths(layer: EncoderLayer) -> None:
    """Let each norm of the layer see the sublayer's output alone, without what went into it."""
    for sublayer, norm in (
        (layer.self_attention, layer.self_attention_norm),
        (layer.feed_forward, layer.feed_forward_norm),
    ):
        entered: list[Tensor] = []
        sublayer.register_forward_pre_hook(lambda _, args, kept=entered: kept.append(args[0]))
        norm.register_forward_pre_hook(lambda _, args, kept=entered: (args[0] - kept.pop(),))


def through_layers(cut: bool) -> tuple[list[float], list[float]]:
    """How different positions are after each layer, and how large each layer's gradient is.

    Of an encoder with fresh weights: the root mean square distance of a position from the mean of
    all, and the norm of the gradient at the weights of queries and keys, of a random loss.
    """
    torch.manual_seed(0)
    config = TransformerConfig(1, model_size=SIZE, num_heads=4, encoder_layers=LAYERS)
    layers = cast(list[EncoderLayer], list(config.build().eval().encoder_layers))
    states, lengths = [torch.randn(1, 20, SIZE)], torch.tensor([20])
    for layer in layers:
        if cut:
            cut_residual_paths(layer)
        states.append(layer(states[-1], lengths))
    weights = [layer.self_attention.in_projection.weight for layer in layers]
    gradients = torch.autograd.grad((states[-1] * torch.randn(1, 20, SIZE)).sum(), weights)
    return (
        [(state - state.mean(1, keepdim=True)).square().mean().sqrt().item() for state in states],
        [gradient[: 2 * SIZE].norm().item() for gradient in gradients],
    )


def residual_paths(run: Run) -> Figure:
    """A stack of encoder layers with its residual paths and without them."""
    kept, cut = through_layers(cut=False), through_layers(cut=True)
    picture, axes = plots.canvas(columns=2, height=3.2)
    ylabels = ("difference of positions (RMS)", "gradient at queries and keys")
    for place, ylabel, with_paths, without in zip(axes, ylabels, kept, cut, strict=True):
        first = LAYERS + 1 - len(with_paths)
        curves = {"with residual paths": with_paths, "without": without}
        layers = range(first, LAYERS + 1)
        plots.lines(place, layers, curves, xlabel="layer", ylabel=ylabel, marker="o")
        place.set_yscale("log")
    caption = (
        f"{LAYERS} encoder layers with fresh weights. Without residual paths all positions become "
        "the same within a few layers, and nothing is left to learn whom to look at."
    )
    numbers: dict[str, Number] = {
        "difference_kept": kept[0][-1],
        "difference_cut": cut[0][:3],
        "gradient_kept": kept[1][0],
    }
    measured = {"gradient": kept[1], "gradient_cut": cut[1]}
    return Figure(picture, caption, numbers, measured)


FIGURES = (causal_mask, parallel_and_stepwise, layer_and_batch_norm, residual_paths)
