"""What a query is: the same things on a desk, looked at with one and without."""

import torch
from torch import Tensor

from docs.chapter.figure import Figure, Run
from training import plots
from training.attention import ScaledDotProductAttention

ITEMS = ("newspaper", "paper", "red cup", "notebook", "book")
# Each key says how much a thing stands out, and how much there is to read in it.
KEYS = torch.tensor([[0.0, 2.0], [0.0, 1.0], [4.0, 0.0], [0.0, 1.5], [0.5, 4.0]])
QUERIES = {
    "whatever stands out": torch.tensor([2.0, 0.0]),
    "something to read": torch.tensor([0.0, 2.0]),
}
# A filter that has learned to look at the middle of what it is given.
FILTER = torch.tensor([0.05, 0.2, 0.5, 0.2, 0.05])
MOVED = (4, 0, 1, 2, 3)


def looks(order: tuple[int, ...]) -> dict[str, Tensor]:
    """The weights over the things on the desk, lying in that order, of each way to look."""
    keys = KEYS[list(order)].unsqueeze(0)
    queries = torch.stack(tuple(QUERIES.values())).unsqueeze(0)
    _, weights = ScaledDotProductAttention()(queries, keys, keys, None)
    fixed = {"average pooling": torch.full((5,), 0.2), "convolution, dense": FILTER}
    return fixed | dict(zip(QUERIES, weights[0], strict=True))


def cues(run: Run) -> Figure:
    """Two orders of the desk: what has no query looks at places, a query finds the thing."""
    picture, axes = plots.canvas(columns=2, height=3.2, sharey=True)
    orders = {"as they lie": (0, 1, 2, 3, 4), "the book moved to the left": MOVED}
    for place, (title, order) in zip(axes, orders.items(), strict=True):
        weights = torch.stack(tuple(looks(order).values()))
        columns = [ITEMS[item] for item in order]
        plots.heatmap(place, weights, xlabel="key", ylabel="", title=title, columns=columns)
        plots.write_cells(place, weights)
    axes[0].set_yticks(range(4), list(looks(MOVED)))
    axes[0].set_ylabel("query")
    caption = (
        "Weights over five things on a desk. Pooling and convolution look at places whatever lies "
        "there; a query finds the thing that it asks for, wherever it lies."
    )
    numbers = {
        "book_asked_for": looks(MOVED)["something to read"][0].item(),
        "book_before_moving": looks((0, 1, 2, 3, 4))["something to read"][4].item(),
        "cup_standing_out": looks(MOVED)["whatever stands out"][3].item(),
        "convolution_at_book": [FILTER[4].item(), FILTER[0].item()],
    }
    return Figure(picture, caption, numbers)


FIGURES = (cues,)
