"""The page and the picture: one file each, whatever the texts are."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from service.client.seeing import Seeing, sentence_views
from service.client.seeing.page import page_of
from service.client.seeing.picture import MAX_SENTENCES, write_picture
from service.errors import ConfigError
from service.pb import translation_pb2 as pb
from tests.running_server import RunningServer, run_service
from tests.service.seen_translations import answer_of

TEXT = "Two young women are walking."
HOSTILE = "</script><img src=x onerror=alert(1)><!--<script>&amp;$data${x}\u2028"
PNG = b"\x89PNG\r\n\x1a\n"


class Elements(HTMLParser):
    """The elements of a page, and the text of each script."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags = list[tuple[str, dict[str, str | None]]]()
        self.scripts = list[str]()
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "script":
            self.scripts.append(data)


def page_with(*answers: tuple[str, pb.Translation]) -> str:
    return page_of(view for answer in answers for view in sentence_views(*answer))


def data_of(page: str) -> list[dict[str, Any]]:
    data: list[dict[str, Any]] = json.loads(Elements(page).scripts[0])
    return data


def test_text_that_looks_like_markup_adds_no_element_to_the_page() -> None:
    plain, hostile = (
        page_with(answer_of([text, " ", "cat"], [text], [[0.5, 0.3, 0.2]]))
        for text in ("dog", HOSTILE)
    )
    assert [tag for tag, _ in Elements(hostile).tags] == [tag for tag, _ in Elements(plain).tags]
    (sentence,) = data_of(hostile)
    assert sentence["text"] == f"{HOSTILE} cat"
    assert sentence["hypotheses"][0]["words"]["target"][0]["text"] == HOSTILE


def test_the_page_names_nothing_outside_itself() -> None:
    elements = Elements(page_with(answer_of(["a"], ["b"], [[1, 0]])))
    links = [
        v for _, attributes in elements.tags for k, v in attributes.items() if k in ("src", "href")
    ]
    assert links == ["data:,"]
    page = page_with()
    assert "@import" not in page and "url(" not in page
    policy = next(a["content"] for _, a in elements.tags if "http-equiv" in a)
    assert policy and policy.startswith("default-src 'none';") and "unsafe" not in policy


def test_the_command_writes_a_page_of_all_that_it_translated(
    server: RunningServer, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    arguments = ("translate", "--server", server.address, "--page", str(page), "--n-best=2")
    result = run_service(*arguments, TEXT, "A man. A dog.", "42")
    assert result.returncode == 0, result.stderr
    sentences = data_of(page.read_text(encoding="utf-8"))
    assert [one["text"] for one in sentences] == [TEXT, "A man.", "A dog.", "42"]
    printed = [line.split("\t")[1] for line in result.stdout.splitlines() if "\t" in line]
    assert printed == [h["text"] for one in sentences for h in one["hypotheses"]]


def test_what_is_printed_is_the_same_with_a_page(server: RunningServer, tmp_path: Path) -> None:
    arguments = ("translate", "--server", server.address, TEXT)
    with_page = run_service(*arguments, "--page", str(tmp_path / "page.html"))
    assert with_page.stdout == run_service(*arguments).stdout != ""


def test_a_page_that_cannot_be_written_is_named(server: RunningServer, tmp_path: Path) -> None:
    file = tmp_path / "missing" / "page.html"
    result = run_service("translate", "--server", server.address, "--page", str(file), TEXT)
    assert result.returncode == 2
    assert result.stderr == f"--page: {file}: No such file or directory\n"


def test_a_picture_is_drawn_of_any_text(tmp_path: Path) -> None:
    file = tmp_path / "picture.png"
    texts = ["$x_", "東京", "كتاب", "👩‍🚀", HOSTILE]
    answers = [answer_of([text, " ", "cat"], [text], [[0.5, 0.3, 0.2]]) for text in texts]
    write_picture([view for answer in answers for view in sentence_views(*answer)], file)
    assert file.read_bytes().startswith(PNG)


@pytest.mark.parametrize(
    ("number", "fault"), [(0, "nothing to draw"), (MAX_SENTENCES + 1, "--page has none")]
)
def test_a_picture_of_nothing_or_too_much_is_refused(
    number: int, fault: str, tmp_path: Path
) -> None:
    views = list(sentence_views(*answer_of(["a"], ["b"], [[1, 0]])))
    with pytest.raises(ConfigError) as caught:
        write_picture(views * number, tmp_path / "picture.png")
    assert re.search(fault, caught.value.faults[0])


def test_without_matplotlib_a_picture_names_the_extra_that_brings_it() -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from service.__main__ import main\n"
        "sys.exit(main(['translate', '--server=localhost:1', '--png=x.png', 'text']))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 2
    assert "pip install 'attention-nmt[plot]'" in result.stderr


def test_nothing_of_it_is_loaded_until_it_is_asked_for() -> None:
    code = "import sys, service.client.command; print('matplotlib' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout == "False\n"


def test_who_asks_for_no_file_asks_for_no_attention() -> None:
    assert Seeing().asking(pb.TranslateRequest()) == pb.TranslateRequest()
