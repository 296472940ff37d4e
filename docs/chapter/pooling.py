"""Attention pooling: a curve from noisy measurements, with ever better weights."""

import torch
from torch import Tensor

from docs.chapter.figure import Figure, Run
from training import plots
from training.kernel_regression import (
    GaussianAttention,
    Samples,
    draw_samples,
    fit,
    predict,
    truth,
)
from training.plots import Axes

SAMPLES = 50
PLACES = torch.arange(0, 5, 0.1)
EPOCHS = 60
RATE = 1.0


def samples() -> Samples:
    """The measurements of all figures."""
    return draw_samples(SAMPLES, torch.Generator().manual_seed(0))


def learned() -> tuple[GaussianAttention, list[float]]:
    """A kernel whose width was learned, and its loss in each epoch."""
    attention = GaussianAttention()
    losses = fit(attention, samples(), EPOCHS, RATE)
    return attention, losses


def error(predictions: Tensor) -> float:
    """Mean squared distance from the curve without noise."""
    return (predictions - truth(PLACES)).square().mean().item()


def roughness(predictions: Tensor) -> float:
    """Mean absolute second difference: how sharply a curve bends from place to place."""
    return predictions.diff(n=2).abs().mean().item()


def draw_curve(axes: Axes, predictions: Tensor, title: str) -> None:
    """Predictions (places,) between the samples and the truth."""
    measured = samples()
    axes.plot(measured.x, measured.y, "o", color=plots.ORANGE, markersize=4, label="samples")
    curves = {"truth": truth(PLACES), "prediction": predictions}
    plots.lines(axes, PLACES, curves, xlabel="x", ylabel="y", title=title)


def draw_weights(axes: Axes, weights: Tensor) -> None:
    """Weights (places, samples), dark where the largest is."""
    plots.heatmap(
        axes,
        weights,
        xlabel="key: sample, by x",
        ylabel="query: place x",
        title="weights",
        limits=(0, weights.max().item()),
        bar="weight",
    )
    axes.set_yticks(range(0, 50, 10), [f"{PLACES[row]:.0f}" for row in range(0, 50, 10)])


def average_pooling(run: Run) -> Figure:
    """Without a query: the mean of all measurements, everywhere."""
    predictions = samples().y.mean().expand(len(PLACES))
    picture, axes = plots.canvas()
    draw_curve(axes[0], predictions, "average pooling")
    caption = (
        "Average pooling: 50 noisy samples of y = 2 sin x + x^0.8, and their mean as the "
        "prediction for every x."
    )
    numbers = {"mean": predictions[0].item(), "squared_error": error(predictions)}
    return Figure(picture, caption, numbers)


def nadaraya_watson(run: Run) -> Figure:
    """Weights by distance, with a kernel of width 1."""
    return regression(
        GaussianAttention(),
        title="kernel of width 1",
        caption="Nadaraya-Watson regression: a Gaussian kernel of width 1 gives the nearest "
        "samples the largest weights.",
    )


def regression(attention: GaussianAttention, title: str, caption: str) -> Figure:
    """The curve that a kernel predicts, beside the weights that it gives."""
    with torch.no_grad():
        predictions, weights = predict(attention, samples(), PLACES)
    picture, axes = plots.canvas(columns=2, width_ratios=[1.1, 1])
    draw_curve(axes[0], predictions, title)
    draw_weights(axes[1], weights)
    numbers = {
        "squared_error": error(predictions),
        "largest_weight": weights.max().item(),
        "roughness": roughness(predictions),
    }
    return Figure(picture, caption, numbers)


def width_by_epoch(run: Run) -> Figure:
    """What learning the width does to the leave-one-out error."""
    attention, losses = learned()
    picture, axes = plots.canvas(height=2.6)
    plots.lines(
        axes[0],
        range(1, EPOCHS + 1),
        {"loss": losses},
        xlabel="epoch",
        ylabel="squared error",
    )
    caption = (
        f"Learning the width with SGD: each sample is predicted from the other 49. The width "
        f"falls from 1 to {attention.width:.2f}."
    )
    return Figure(picture, caption, {"loss": losses[::10], "width": attention.width})


def learned_width(run: Run) -> Figure:
    """The same regression with the width that was learned."""
    attention, _ = learned()
    return regression(
        attention,
        title=f"kernel of the learned width {attention.width:.2f}",
        caption="With the learned width the weights are sharper: the curve follows the truth, and "
        "is less smooth.",
    )


def batch_product(run: Run) -> Figure:
    """Two batches of ten values: a product of matrices is a weighted average for each."""
    values = torch.arange(20.0).view(2, 10, 1)
    weights = torch.full((2, 1, 10), 0.1)
    weights[1] = torch.softmax(torch.linspace(0, 3, 10), 0)
    averages = torch.bmm(weights, values).flatten()
    picture, axes = plots.canvas(columns=2, height=2.8)
    for row, place in enumerate(axes):
        place.bar(range(10), values[row, :, 0].tolist(), color=plots.SKY, label="values")
        place.axhline(averages[row].item(), color=plots.RED, label="weighted average")
        plots.label(place, xlabel="key", ylabel="value", title=f"batch {row}")
        beside = place.twinx()
        beside.plot(range(10), weights[row, 0].tolist(), "o-", color=plots.BLACK, markersize=4)
        beside.set(ylim=(0, 0.4), ylabel="weight (black)")
        beside.grid(False)
        place.legend(loc="upper left")
        place.set_ylim(0, 30)
    caption = (
        "torch.bmm(weights, values): each batch's values, averaged with its own weights "
        f"(equal: {averages[0]:.1f}; rising: {averages[1]:.1f})."
    )
    return Figure(picture, caption, {"averages": averages.tolist()})


FIGURES = (average_pooling, nadaraya_watson, width_by_epoch, learned_width, batch_product)
