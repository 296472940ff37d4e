"""The page on decoding has every option, and every test that it names is one."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from service.decoding import DecodingOptions
from service.pb import translation_pb2 as pb

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "decoding.md").read_text()
ROWS: dict[str, list[str]] = {
    cells[1].strip(" `"): re.findall(r"`(test_\w+)`", cells[-2])
    for cells in (line.split("|") for line in PAGE.splitlines() if line.startswith("| `"))
    if len(cells) == 8
}


@pytest.fixture(scope="module")
def tests() -> set[str]:
    sources = (path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    return {name for source in sources for name in re.findall(r"^def (test_\w+)", source, re.M)}


def test_every_option_is_a_row() -> None:
    in_search = {field.name for field in fields(DecodingOptions)}
    assert ROWS.keys() == in_search | set(pb.DecodingOptions.DESCRIPTOR.fields_by_name)


@pytest.mark.parametrize("option", ROWS)
def test_an_option_has_a_test(option: str, tests: set[str]) -> None:
    assert ROWS[option] and tests.issuperset(ROWS[option])


def test_every_test_that_the_page_names_is_there(tests: set[str]) -> None:
    assert tests.issuperset(re.findall(r"`(test_\w+)`", PAGE))
