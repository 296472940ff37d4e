"""The Chinese page of the chapter is the English one: figures, functions, code and links."""

import re

import pytest

from docs.make_figures import PAGE

CHINESE = PAGE.with_name("attention.zh.md")


@pytest.mark.parametrize(
    "pattern",
    [
        r"^(#+) ",
        r"^#+ (\d)\.",
        r"\(figures/([\w-]+)\.png\)",
        r"`(docs\.chapter\.\w+\.\w+)`",
        r"^\$ (make \S+|python -m \S+)",
    ],
    ids=["headings", "numbers", "figures", "functions", "commands"],
)
def test_both_pages_have_the_same_in_the_same_order(pattern: str) -> None:
    english, chinese = (
        re.findall(pattern, page.read_text(encoding="utf-8"), re.MULTILINE)
        for page in (PAGE, CHINESE)
    )
    assert english == chinese != []


def test_both_pages_name_the_same_code() -> None:
    english, chinese = (
        set(re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)))
        for page in (PAGE, CHINESE)
    )
    assert english == chinese
