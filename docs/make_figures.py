"""Draws the figures of docs/attention.md: `python -m docs.make_figures [--quick] [--only NAME…]`.

Each becomes NAME.png in docs/figures, and what it shows an entry of numbers.json there. Without
`--out` its caption is put into the page as well, as the picture's text. `PARTS` are the modules of
`docs.chapter` in the order of the page; `docs.chapter.figure` says what they hold. Every figure
starts from the same seed, alone or among others.
"""

import argparse
import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import torch

from docs.chapter import blocks, cues, heads, pooling, positions, product, scoring, seq2seq
from docs.chapter.figure import ROOT, Draw, Figure, Number, Run
from training import plots

PAGE: Final = ROOT / "docs" / "attention.md"
FOLDER: Final = ROOT / "docs" / "figures"
NUMBERS: Final = "numbers.json"
PARTS: Final[tuple[ModuleType, ...]] = (
    cues,
    pooling,
    scoring,
    seq2seq,
    positions,
    blocks,
    heads,
    product,
)
_SEED = 0
_DIGITS = 5
_IMAGE = re.compile(r"!\[[^\]]*\]\(figures/([\w-]+)\.png\)")


def registry() -> dict[str, Draw]:
    """Every figure by its name, in the order of the page."""
    return {name_of(draw): draw for part in PARTS for draw in part.FIGURES}


def name_of(draw: Draw) -> str:
    """`average-pooling` of the function `average_pooling`."""
    return draw.__name__.replace("_", "-")


def draw_figure(draw: Draw, run: Run, folder: Path) -> Figure:
    """Draw one figure into the folder."""
    torch.manual_seed(_SEED)
    with plots.style():
        figure = draw(run)
        plots.save(figure.picture, figure.caption, folder / f"{name_of(draw)}.png")
    return figure


def entry(draw: Draw, figure: Figure) -> dict[str, Any]:
    """What numbers.json says of a figure."""
    return {
        "caption": figure.caption,
        "function": f"{draw.__module__}.{draw.__name__}",
        "numbers": {key: _rounded(value) for key, value in figure.numbers.items()},
        "measured": {key: _rounded(value) for key, value in figure.measured.items()},
    }


def _rounded(value: Number) -> Any:
    """To a few digits: the last ones are the processor's."""
    if isinstance(value, Sequence):
        return [_rounded(part) for part in value]
    if not math.isfinite(value):
        raise ValueError(f"a figure's number is {value}; JSON has only finite ones")
    return float(f"{value:.{_DIGITS}g}")


def make(names: Sequence[str], run: Run, folder: Path) -> dict[str, dict[str, Any]]:
    """Draw the named figures and renew their entries in the folder's numbers.json; return all."""
    folder.mkdir(parents=True, exist_ok=True)
    file, draws = folder / NUMBERS, registry()
    entries = json.loads(file.read_text()) if file.exists() else {}
    for name in names:
        print(name, flush=True)
        entries[name] = entry(draws[name], draw_figure(draws[name], run, folder))
    ordered = {name: entries[name] for name in draws if name in entries}
    file.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n")
    return ordered


def with_captions(page: str, captions: Mapping[str, str]) -> str:
    """The page with the captions as the texts of its pictures."""

    def with_caption(image: re.Match[str]) -> str:
        name = image[1]
        return f"![{captions[name]}](figures/{name}.png)" if name in captions else image[0]

    return _IMAGE.sub(with_caption, page)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m docs.make_figures", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short trainings, as the tests do")
    parser.add_argument("--only", nargs="+", choices=registry(), metavar="NAME", help="which ones")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where to, if not docs/figures")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # sums in the same order on every machine
    names = arguments.only or list(registry())
    entries = make(names, Run(quick=arguments.quick), arguments.out or FOLDER)
    if arguments.out is None:
        captions = {name: entry["caption"] for name, entry in entries.items()}
        PAGE.write_text(with_captions(PAGE.read_text(), captions))


if __name__ == "__main__":
    main()
