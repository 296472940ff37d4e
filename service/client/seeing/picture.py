"""Attention matrices as a picture, drawn by matplotlib: for slides, papers and notebooks."""

import warnings
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from service.client.seeing.lines import Line
from service.client.seeing.views import SentenceView, View, seen
from service.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FLAG = "--png"
MAX_SENTENCES = 40  # a picture of more is larger than programs show
_DOTS_PER_INCH = 144
_INCHES_PER_WORD = 0.32
_INCHES_PER_CHARACTER = 0.13  # of the widest alphabets
_MAX_LABEL = 32
# The first of these that has a character draws it. Matplotlib brings DejaVu Sans itself.
_FONTS = (
    "DejaVu Sans",
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
    "Source Han Sans",
    "Hiragino Sans",
    "PingFang SC",
    "Yu Gothic",
    "Microsoft YaHei",
    "Malgun Gothic",
    "WenQuanYi Zen Hei",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
    "Noto Emoji",
    "Segoe UI Symbol",
)


def load_matplotlib() -> None:
    """Raises ConfigError if it isn't installed."""
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError as error:
        fault = f"needs {error.name}, which isn't installed: pip install 'attention-nmt[plot]'"
        raise ConfigError(_FLAG, [fault]) from error


def write_picture(sentences: Sequence[SentenceView], file: Path) -> None:
    """PNG: the best translation of each sentence, word by word, one below the other.

    Raises ConfigError if there are none or too many, and naming a file that can't be written.
    """
    best = [sentence.hypotheses[0].words for sentence in sentences if sentence.hypotheses]
    views = [view for view in best if view.weights]
    if not views:
        raise ConfigError(_FLAG, ["there is nothing to draw: the model saw no sentence"])
    if len(views) > MAX_SENTENCES:
        fault = f"{len(views)} sentences don't fit; the limit is {MAX_SENTENCES}, --page has none"
        raise ConfigError(_FLAG, [fault])
    try:
        _draw(views, file)
    except OSError as error:
        raise ConfigError(_FLAG, [f"{file}: {error.strerror}"]) from error


def _draw(views: Sequence[View], file: Path) -> None:
    import matplotlib
    from matplotlib.figure import Figure

    sizes = [_size(view) for view in views]
    heights = [height for _, height in sizes]
    size = (max(width for width, _ in sizes), sum(heights))
    with matplotlib.rc_context({"font.family": _installed_fonts()}), warnings.catch_warnings():
        # What no font has is drawn as an empty box; a warning for each would say no more.
        warnings.filterwarnings("ignore", "Glyph .* missing")
        figure = Figure(figsize=size, dpi=_DOTS_PER_INCH, layout="constrained")
        axes = figure.subplots(len(views), squeeze=False, height_ratios=heights)
        for place, view in zip(chain(*axes), views, strict=True):
            _draw_matrix(place, view)
        figure.savefig(file, format="png")


def _size(view: View) -> tuple[float, float]:
    """Width and height in inches: the cells, and the labels beside and above them."""
    source, target = _labels(view.source), _labels(view.target)
    return (
        len(source) * _INCHES_PER_WORD + max(map(len, target)) * _INCHES_PER_CHARACTER + 0.5,
        len(target) * _INCHES_PER_WORD + max(map(len, source)) * _INCHES_PER_CHARACTER + 0.5,
    )


def _labels(line: Line) -> list[str]:
    texts = [part.text for part in seen(line)]
    return [text if len(text) <= _MAX_LABEL else f"{text[:_MAX_LABEL]}…" for text in texts]


def _installed_fonts() -> list[str]:
    from matplotlib import font_manager

    installed = {font.name for font in font_manager.fontManager.ttflist}
    return [name for name in _FONTS if name in installed]


def _draw_matrix(axes: "Axes", view: View) -> None:
    """Black is 1 and white 0, the same in every matrix; a ring is a pair of the alignment."""
    axes.imshow(view.weights, cmap="Greys", vmin=0, vmax=1, aspect="equal")
    for set_ticks, line in ((axes.set_xticks, view.source), (axes.set_yticks, view.target)):
        labels = _labels(line)
        set_ticks(range(len(labels)), labels, parse_math=False)
    axes.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
    axes.tick_params(axis="x", rotation=90)
    for source, target in view.pairs:
        axes.plot(source, target, "o", markersize=4, markerfacecolor="none", color="tab:orange")
