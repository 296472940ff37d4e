"""What the documentation shows is what the service does."""

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from docs import make_settings
from docs.make_examples import MODELS, PAGE, with_examples
from service.client.local import LocalClient
from service.config import ServerConfig
from service.config.option import variable
from service.config.sources import FILE_VARIABLE, TOKEN_VARIABLE
from service.errors import TranslationError

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "models" / "README.md", *(ROOT / "docs").glob("*.md")])
OPERATIONS = ROOT / "docs" / "operations.md"


def anchors(page: Path) -> set[str]:
    """Of the headings of a page, as GitHub makes them."""
    headings: list[str] = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(page: Path) -> list[str]:
    """The targets of a page's links that stay in the repository."""
    targets: list[str] = re.findall(r"\]\(([^)\s]+)\)", page.read_text())
    return [target for target in targets if "://" not in target]


def statuses(error: type[TranslationError]) -> Iterator[str]:
    yield error.status
    for kind in error.__subclasses__():
        yield from statuses(kind)


def test_the_examples_of_the_text_page_are_what_the_model_says() -> None:
    with LocalClient(MODELS) as client:
        page = PAGE.read_text()
        assert with_examples(page, client) == page, "run: python docs/make_examples.py"


def test_the_table_of_settings_is_what_the_configuration_says() -> None:
    page = make_settings.PAGE.read_text()
    assert make_settings.with_settings(page) == page, "run: python -m docs.make_settings"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_variable_that_a_page_names_is_one_that_is_read(page: Path) -> None:
    known = {variable(option.name) for option in fields(ServerConfig)}
    named = set(re.findall(r"\bNMT_[A-Z_]+[A-Z]\b(?!=tcp)", page.read_text()))
    # What the page on operations shows as a fault.
    assert named - {"NMT_PROT"} <= known | {FILE_VARIABLE, TOKEN_VARIABLE}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_every_status_that_an_error_ends_with_says_what_a_client_does() -> None:
    page = OPERATIONS.read_text()
    missing = {status for status in statuses(TranslationError) if f"\n| `{status}` | " not in page}
    assert not missing


def test_the_table_of_alerts_has_each_alert_with_its_severity() -> None:
    rules = yaml.safe_load((ROOT / "deploy" / "observability" / "alerts.yaml").read_text())
    alerts = {
        rule["alert"]: rule["labels"]["severity"]
        for group in rules["groups"]
        for rule in group["rules"]
    }
    rows = re.findall(r"^\| `(Nmt\w+)` \| (\w+) \|", OPERATIONS.read_text(), re.MULTILINE)
    assert dict(rows) == alerts
