"""Self-attention among other ways to read a sequence, and how it is told the order."""

import math
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from docs.chapter.figure import Figure, Run
from training import plots
from training.attention import (
    AdditiveAttention,
    Attention,
    SelfAttention,
    sinusoidal_positions,
)
from training.transformer import EncoderLayer, TransformerConfig

COLUMNS = 32
POSITIONS = 60
SIZE = 64
KERNEL = 7
LENGTHS = tuple(2**power for power in range(4, 12))
NAMES = ("convolution", "recurrence", "self-attention")


@torch.no_grad()
def multi_head(run: Run) -> Figure:
    """Four heads over one sequence, with either scoring function."""
    additive = AdditiveAttention(8, 8, attention_size=8)
    nn.init.normal_(additive.score_projection.weight)  # large enough to see
    scorings: dict[str, Attention | None] = {"scaled dot product": None, "additive": additive}
    sequence, lengths = 2 * torch.randn(1, 10, 32), torch.tensor([8])
    picture, axes = plots.canvas(rows=2, columns=4, height=4.2, sharex=True, sharey=True)
    numbers = {}
    for row, (name, scoring) in enumerate(scorings.items()):
        _, weights = SelfAttention(32, 4, attention=scoring)(sequence, lengths)
        for head, matrix in enumerate(weights[0]):
            place, title = axes[4 * row + head], f"{name}, {head}"
            plots.heatmap(place, matrix, xlabel="", ylabel="", title=title)
            place.set(xticks=range(0, 10, 3), yticks=range(0, 10, 3))
        numbers[name] = weights[0, :, 0, 0].tolist()
    picture.supylabel("query position", fontsize=10)
    for place in axes[4:]:
        place.set_xlabel("key position")
    caption = (
        "Heads 0 to 3 of SelfAttention with fresh weights, 8 of 10 positions valid: each head has "
        "its own subspace and its own weights, whichever scoring function it has."
    )
    return Figure(picture, caption, numbers)


def longest_paths(length: int) -> tuple[int, int, int]:
    """Layers, or steps, from the first to the last position, in the order of `NAMES`."""
    # A layer with a kernel of k reaches (k - 1) / 2 positions to either side.
    return math.ceil(2 * (length - 1) / (KERNEL - 1)), length - 1, 1


def multiplications(length: int) -> tuple[int, int, int]:
    """Of one layer of `SIZE` channels, constant factors left out, in the order of `NAMES`."""
    return KERNEL * length * SIZE**2, length * SIZE**2, length**2 * SIZE


def layers() -> tuple[nn.Module, ...]:
    """One layer of each kind, in the order of `NAMES`."""
    return (
        nn.Conv1d(SIZE, SIZE, KERNEL, padding=KERNEL // 2),
        nn.GRU(SIZE, SIZE, batch_first=True),
        SelfAttention(SIZE, 4),
    )


@torch.no_grad()
def milliseconds(length: int, repeats: int) -> tuple[float, ...]:
    """The shortest time of one sequence's forward pass, in the order of `NAMES`."""
    sequence = torch.randn(1, length, SIZE)
    convolution, recurrence, attention = layers()
    calls: tuple[Callable[[], object], ...] = (
        lambda: convolution(sequence.mT),
        lambda: recurrence(sequence),
        lambda: attention(sequence, None),
    )
    return tuple(1e3 * min(_seconds(call) for _ in range(repeats)) for call in calls)


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def three_layers(run: Run) -> Figure:
    """Convolution, recurrence and self-attention over the length of what they read."""
    measured_lengths = LENGTHS[:3] if run.quick else LENGTHS
    times = [milliseconds(length, 2 if run.quick else 15) for length in measured_lengths]
    picture, axes = plots.canvas(columns=3, height=3.0)
    for place, lengths, rows, ylabel in (
        (axes[0], LENGTHS, [longest_paths(n) for n in LENGTHS], "longest path (layers or steps)"),
        (axes[1], LENGTHS, [multiplications(n) for n in LENGTHS], "multiplications (no factors)"),
        (axes[2], measured_lengths, times, "measured (ms)"),
    ):
        curves = dict(zip(NAMES, zip(*rows, strict=True), strict=True))
        plots.lines(place, lengths, curves, xlabel="length n", ylabel=ylabel, marker="o")
        place.set_xscale("log", base=2)
        place.set_yscale("log")
    for place in axes[1:]:
        place.legend().remove()
    axes[0].set_ylim(bottom=0.5)
    axes[0].legend(loc="lower right", bbox_to_anchor=(1.05, 0.1))
    caption = (
        f"One layer of {SIZE} channels, kernel {KERNEL}: how far the first position is from the "
        "last, what a layer costs, and how long it takes on one core here."
    )
    numbers = {
        "lengths": LENGTHS,
        "paths": [longest_paths(n) for n in LENGTHS],
        "multiplications": [multiplications(n) for n in LENGTHS],
    }
    return Figure(picture, caption, numbers, {"milliseconds": times})


def position_columns(run: Run) -> Figure:
    """Columns 6 to 9 of the encodings over the positions."""
    encodings = sinusoidal_positions(POSITIONS, COLUMNS)
    picture, axes = plots.canvas(height=2.8)
    curves = {f"column {column}": encodings[:, column] for column in range(6, 10)}
    plots.lines(axes[0], range(POSITIONS), curves, xlabel="position", ylabel="encoding")
    axes[0].legend(loc="upper center", bbox_to_anchor=(0.5, 1.2), ncols=4)
    caption = (
        f"Columns 6 to 9 of {COLUMNS}: each pair is a sine and a cosine of one frequency, and "
        "the next pair's is lower."
    )
    numbers = {"position_1": encodings[1, 6:10].tolist()}
    return Figure(picture, caption, numbers)


def binary_digits(count: int, digits: int) -> Tensor:
    """The numbers 0 .. count - 1 in binary, (count, digits), lowest digit first."""
    return torch.arange(count).unsqueeze(1) >> torch.arange(digits) & 1


def position_encodings(run: Run) -> Figure:
    """All encodings as a heatmap, beside the numbers that they count like."""
    encodings, digits = sinusoidal_positions(POSITIONS, COLUMNS), binary_digits(POSITIONS, 6)
    picture, axes = plots.canvas(columns=2, height=4.2, width_ratios=[1, 2.6], sharey=True)
    plots.heatmap(
        axes[0], digits, xlabel="binary digit, lowest first", ylabel="position", title="binary"
    )
    plots.heatmap(
        axes[1],
        encodings,
        xlabel="column",
        ylabel="",
        title="sinusoidal",
        limits=(-1, 1),
        colours="RdBu_r",
        bar="encoding",
    )
    caption = (
        "Counting in binary, a digit alternates half as often as the one before it; the encodings "
        "do the same with waves, column by column."
    )
    return Figure(picture, caption, {"last_position": encodings[-1].tolist()})


def frequencies(encodings: Tensor) -> Tensor:
    """Radians per position of each pair of columns, from the first two encodings alone."""
    sines, cosines = encodings[1, 0::2], encodings[1, 1::2]
    return torch.atan2(sines, cosines)


def position_frequencies(run: Run) -> Figure:
    """How fast each pair of columns turns."""
    turned = frequencies(sinusoidal_positions(2, COLUMNS))
    columns = torch.arange(0, COLUMNS, 2)
    curves = {
        "10000^(-column / 32)": torch.pow(10000.0, -columns / COLUMNS),
        "measured on positions 0 and 1": turned,
    }
    picture, axes = plots.canvas(height=2.6)
    plots.lines(axes[0], columns, curves, xlabel="column", ylabel="radians per position")
    axes[0].lines[1].set(linestyle="", marker="o")
    axes[0].legend()
    axes[0].set_yscale("log")
    caption = "The frequency falls geometrically with the column, from 1 towards 1 / 10000."
    return Figure(picture, caption, {"radians": turned.tolist()})


def rotation_matrix(offset: int, size: int) -> Tensor:
    """The matrix (size, size) that turns the encoding of any position i into that of i + offset.

    It turns each pair of columns (sin, cos) by offset times its frequency; i isn't in it.
    """
    angles = offset * torch.pow(10000.0, -torch.arange(0, size, 2, dtype=torch.float64) / size)
    sines, cosines = angles.sin(), angles.cos()
    blocks = torch.stack((cosines, sines, -sines, cosines), dim=-1).view(-1, 2, 2)
    matrix: Tensor = torch.block_diag(*blocks).float()  # type: ignore[no-untyped-call]
    return matrix


def position_rotation(run: Run) -> Figure:
    """Two pairs of columns as points of the plane, each turned to the point three positions on."""
    offset, shown = 3, 4
    encodings = sinusoidal_positions(shown + offset, COLUMNS)
    turned = encodings[:shown] @ rotation_matrix(offset, COLUMNS).T
    picture, axes = plots.canvas(columns=3, height=3.3, subplot_kw={"aspect": "equal"})
    for place, pair in zip(axes, (0, 2, 4), strict=True):
        sines, cosines = encodings[:, pair].tolist(), encodings[:, pair + 1].tolist()
        place.plot(cosines, sines, "o", color=plots.BLUE)
        for i in range(shown):
            place.annotate(
                "",
                xy=(float(turned[i, pair + 1]), float(turned[i, pair])),
                xytext=(cosines[i], sines[i]),
                arrowprops={"arrowstyle": "->", "color": plots.RED, "alpha": 0.6},
            )
            place.annotate(f"{i}", (1.12 * cosines[i], 1.12 * sines[i]), ha="center", va="center")
        title = f"columns {pair} and {pair + 1}"
        plots.label(place, xlabel="cosine", ylabel="sine", title=title)
        place.set(xlim=(-1.3, 1.3), ylim=(-1.3, 1.3))
    caption = (
        f"Positions as points: one rotation turns each position i (numbers) into i + {offset} "
        "(arrows), by an angle that depends on the pair of columns and not on i."
    )
    numbers = {"degrees": (frequencies(encodings)[[0, 1, 2]] * offset).rad2deg().tolist()}
    return Figure(picture, caption, numbers)


@torch.no_grad()
def distances_after(order: Tensor, positions: bool) -> Tensor:
    """How far each position's output is from those of the sequence in another order.

    (length, length): rows are positions of the sequence, columns of the reordered one; of one
    encoder layer with fresh weights, with position encodings or without.
    """
    torch.manual_seed(0)
    config = TransformerConfig(1, model_size=COLUMNS, num_heads=4, feed_forward_size=64)
    layer, words = EncoderLayer(config).eval(), torch.randn(1, len(order), COLUMNS)
    encodings = sinusoidal_positions(len(order), COLUMNS) if positions else 0.0
    lengths = torch.tensor([len(order)])
    output, reordered = (
        layer(sequence + encodings, lengths) for sequence in (words, words[:, order])
    )
    return torch.cdist(output, reordered)[0]


def permutation(run: Run) -> Figure:
    """What a layer gives for a sequence in another order."""
    order = torch.tensor([3, 0, 6, 1, 7, 4, 2, 5])
    picture, axes = plots.canvas(columns=2, height=3.4, sharey=True)
    hollow: dict[str, Any] = {"fillstyle": "none", "markersize": 16}
    moved = {}
    for place, positions in zip(axes, (False, True), strict=True):
        distances = distances_after(order, positions)
        name = f"{'with' if positions else 'without'} positions"
        moved[name] = distances[order, torch.arange(len(order))].tolist()
        plots.heatmap(
            place,
            distances,
            xlabel="word of the other order",
            ylabel="word" if place is axes[0] else "",
            title=name,
            columns=[str(word) for word in order.tolist()],
            limits=(0, 10),
            colours="Blues_r",
            bar="distance of outputs",
        )
        place.plot(range(len(order)), order.tolist(), "s", color=plots.RED, **hollow)
        place.tick_params(axis="x", rotation=0)
    caption = (
        "An encoder layer's outputs for eight words and for the same in another order. Without "
        "positions each word's (framed) is the same wherever it stands; with them none is."
    )
    numbers = {
        "largest_with_positions": max(moved["with positions"]),
        "smallest_with_positions": min(moved["with positions"]),
    }
    return Figure(picture, caption, numbers)


FIGURES = (
    multi_head,
    three_layers,
    position_columns,
    position_encodings,
    position_frequencies,
    position_rotation,
    permutation,
)
