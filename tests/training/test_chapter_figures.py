"""The chapter's figures: drawn quickly they show the numbers of those that are in the page."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from docs.chapter import pooling
from docs.chapter.figure import Figure, Run
from docs.make_figures import (
    FOLDER,
    NUMBERS,
    PAGE,
    draw_figure,
    entry,
    make,
    registry,
    with_captions,
)
from training import plots

NAMES = list(registry())
COMMITTED: dict[str, dict[str, Any]] = json.loads((FOLDER / NUMBERS).read_text())
MAX_BYTES = 150_000
WIDTH = 1200  # dots
AGAIN = "run: make figures"


def flat(value: Any) -> Iterator[float]:
    """The numbers of nested lists, in order."""
    if isinstance(value, list):
        for part in value:
            yield from flat(part)
    else:
        yield value


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield Run(quick=True)
    torch.set_num_threads(threads)


@pytest.mark.parametrize("name", NAMES)
def test_a_quick_figure_has_the_committed_numbers(name: str, run: Run, tmp_path: Path) -> None:
    draw = registry()[name]
    drawn = entry(draw, draw_figure(draw, run, tmp_path))
    committed = COMMITTED[name]
    assert drawn["function"] == committed["function"]
    assert list(drawn["numbers"]) == list(committed["numbers"]), AGAIN
    for key, value in drawn["numbers"].items():
        expected = pytest.approx(list(flat(committed["numbers"][key])), rel=0.01, abs=1e-3)
        assert list(flat(value)) == expected, (key, AGAIN)
    assert (tmp_path / f"{name}.png").stat().st_size > 0


@pytest.mark.parametrize("name", NAMES)
def test_a_committed_figure_is_as_wide_as_a_page_and_not_large(name: str) -> None:
    content = (FOLDER / f"{name}.png").read_bytes()
    assert len(content) <= MAX_BYTES
    assert int.from_bytes(content[16:20]) == WIDTH
    # Neither a day nor a version: the same picture has the same bytes.
    assert b"tEXt" not in content and b"tIME" not in content


def test_a_figure_is_the_same_to_the_byte_each_time(tmp_path: Path) -> None:
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        make(["scaling"], Run(quick=True), folder)
    first, second = ({f.name: f.read_bytes() for f in folder.iterdir()} for folder in folders)
    assert first == second


def test_a_single_figure_leaves_the_other_entries_as_they_are(tmp_path: Path) -> None:
    other = {"average-pooling": {"caption": "kept"}}
    (tmp_path / NUMBERS).write_text(json.dumps(other))
    assert make(["scaling"], Run(quick=True), tmp_path)["average-pooling"] == {"caption": "kept"}
    assert list(json.loads((tmp_path / NUMBERS).read_text())) == ["average-pooling", "scaling"]


def test_a_number_that_json_does_not_have_is_refused() -> None:
    picture, _ = plots.canvas()
    with pytest.raises(ValueError, match="a figure's number is nan"):
        entry(pooling.average_pooling, Figure(picture, "", {"x": [1.0, float("nan")]}))


def test_the_page_shows_every_figure_in_order_with_its_caption_and_its_function() -> None:
    page = PAGE.read_text()
    assert re.findall(r"\(figures/([\w-]+)\.png\)", page) == NAMES
    captions = {name: entry["caption"] for name, entry in COMMITTED.items()}
    assert with_captions(page, captions) == page, AGAIN
    for name, text in zip(NAMES, re.split(r"!\[[^\]]*\]\(figures/", page)[1:], strict=True):
        assert f"`{COMMITTED[name]['function']}`" in text, name
