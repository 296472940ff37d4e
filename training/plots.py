"""How the chapter's figures look: one style, curves, heatmaps, PNGs that are the same each time.

The one module of `training` that imports matplotlib (the extra `plot`); it knows no attention. The
palette is Okabe and Ito's, which colour-blind readers tell apart; heatmaps are white at 0.
"""

import textwrap
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.rcsetup import cycler
from numpy.typing import ArrayLike

__all__ = [
    "PALETTE",
    "Axes",
    "Picture",
    "canvas",
    "heatmap",
    "label",
    "lines",
    "save",
    "style",
    "write_cells",
]
BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, RED, PURPLE = PALETTE = (
    "#000000",
    "#e69f00",
    "#56b4e9",
    "#009e73",
    "#f0e442",
    "#0072b2",
    "#d55e00",
    "#cc79a7",
)
# Yellow is too faint for a line on white.
LINE_COLOURS = (BLUE, RED, GREEN, ORANGE, PURPLE, SKY, BLACK)
_WIDTH_INCHES = 8.0
_DOTS_PER_INCH = 150
_CAPTION_COLUMNS = 112
_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": cycler(color=LINE_COLOURS),
    "grid.color": "#e0e0e0",
    "legend.fontsize": 9,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
}


def style() -> AbstractContextManager[None]:
    """The style in which everything drawn inside the context is drawn."""
    return rc_context(_STYLE)


def canvas(
    rows: int = 1, columns: int = 1, height: float = 3.2, **options: Any
) -> tuple[Picture, list[Axes]]:
    """A picture as wide as a page, `height` inches high, and its axes row by row.

    `options` are those of matplotlib's `Figure.subplots`.
    """
    picture = Picture(
        figsize=(_WIDTH_INCHES, height),
        dpi=_DOTS_PER_INCH,
        layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.06),
        facecolor="white",
    )
    return picture, list(picture.subplots(rows, columns, squeeze=False, **options).flat)


def label(axes: Axes, *, xlabel: str, ylabel: str, title: str = "") -> None:
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.set_title(title)


def lines(
    axes: Axes,
    x: ArrayLike,
    curves: Mapping[str, ArrayLike],
    *,
    xlabel: str,
    ylabel: str,
    title: str = "",
    marker: str = "",
) -> None:
    """Curves over common places x (n,), each of (n,), named in a legend where there are several."""
    for name, y in curves.items():
        axes.plot(np.asarray(x), np.asarray(y), marker=marker, label=name, markersize=4)
    label(axes, xlabel=xlabel, ylabel=ylabel, title=title)
    if len(curves) > 1:
        axes.legend()


def heatmap(
    axes: Axes,
    matrix: ArrayLike,
    *,
    xlabel: str,
    ylabel: str,
    title: str = "",
    columns: Sequence[str] | None = None,
    rows: Sequence[str] | None = None,
    limits: tuple[float, float] | None = (0.0, 1.0),
    colours: str = "Blues",
    bar: str = "",
    aspect: str = "auto",
) -> None:
    """A matrix (rows, columns), row 0 above; by default from white at 0 to dark at 1.

    `columns` and `rows` name the cells, `bar` the unit of a colour bar, `limits` None are the
    matrix's own.
    """
    low, high = limits or (None, None)
    image = axes.imshow(
        np.asarray(matrix),
        cmap=colours,
        vmin=low,
        vmax=high,
        aspect=aspect,  # type: ignore[arg-type]
        interpolation="nearest",
    )
    label(axes, xlabel=xlabel, ylabel=ylabel, title=title)
    axes.grid(False)
    if columns is not None:
        axes.set_xticks(range(len(columns)), columns, rotation=90, parse_math=False)
    if rows is not None:
        axes.set_yticks(range(len(rows)), rows, parse_math=False)
    if bar:
        figure = axes.get_figure()
        assert figure is not None
        figure.colorbar(image, ax=axes, label=bar)


def write_cells(axes: Axes, matrix: ArrayLike) -> None:
    """The numbers of a heatmap between 0 and 1 in its cells, white where it is dark."""
    for (row, column), value in np.ndenumerate(np.asarray(matrix)):
        colour = "white" if value > 0.6 else "black"
        text = f"{value:.2f}" if value else "0"
        axes.text(column, row, text, ha="center", va="center", color=colour, fontsize=9)


def save(picture: Picture, caption: str, file: Path) -> None:
    """Write a PNG with its caption below, without anything of the day or the library in it."""
    text = textwrap.fill(caption, _CAPTION_COLUMNS)
    picture.supxlabel(text, x=0.01, ha="left", fontsize=9, color="#444444")
    picture.savefig(file, format="png", metadata={"Software": None})
