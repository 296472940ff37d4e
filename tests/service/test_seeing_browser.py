"""The page in a real browser: what lights up, by pointer and by keyboard, and that nothing leaks.

It needs Chromium on the machine (Debian: `apt-get install chromium`), which Playwright drives.
"""

import json
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Error, Locator, Page, sync_playwright

from service.client.local import LocalClient
from service.client.seeing import sentence_views
from service.client.seeing.page import page_of
from service.pb import translation_pb2 as pb
from tests.service.seen_translations import answer_of

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no Chromium here: apt-get install chromium")

MODELS = Path(__file__).parents[2] / "models"
TEXTS = ["I don't like the red cars that my brother bought. Where is Tom?", "42"]
HOSTILE = "</script><img src=x onerror=window.hit=1>"
RIGHT_TO_LEFT = answer_of(
    ["red", " ", "book"], ["كتاب", " ", "أحمر"], [[0.1, 0.9, 0], [0.7, 0.1, 0.2]], pairs=[(1, 0)]
)


@pytest.fixture(scope="module")
def real_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of what the shipped model says; three translations of each sentence."""
    request = pb.TranslateRequest(
        contents=TEXTS,
        model="transformer-en-fr",
        include_attention=True,
        include_alignment=True,
        include_token_scores=True,
        options=pb.DecodingOptions(beam_size=3, num_hypotheses=3),
    )
    with LocalClient(MODELS) as client:
        translations = client.translate(request).translations
    file = tmp_path_factory.mktemp("pages") / "real.html"
    return write_page(file, *zip(TEXTS, translations, strict=True))


@pytest.fixture(scope="module")
def browser(real_page: Path) -> Iterator[Browser]:
    """Begun after the model has answered: Playwright keeps an event loop in this thread."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser, real_page: Path) -> Iterator[Page]:
    """A page that may ask for nothing but itself, and says nothing on its console."""
    said, asked = list[str](), list[str]()
    context = browser.new_context(reduced_motion="reduce")
    context.set_default_timeout(20_000)
    context.on("request", lambda request: asked.append(request.url))
    context.on("console", lambda message: said.append(message.text))
    context.on("weberror", lambda error: said.append(str(error.error)))
    page = context.new_page()
    page.goto(real_page.as_uri())
    yield page
    context.close()
    assert not said
    assert {url.split(":")[0] for url in asked} == {"file"}


def write_page(file: Path, *answers: tuple[str, pb.Translation]) -> Path:
    file.write_text(page_of(view for answer in answers for view in sentence_views(*answer)))
    return file


def data_of(page: Page) -> Any:
    return json.loads(page.locator("#data").text_content() or "")


def words(page: Page, side: str, sentence: int = 0) -> Locator:
    return page.locator(".sentence").nth(sentence).locator(f".{side} .word")


def weights_shown(words: Locator) -> list[float]:
    """How brightly each word is lit, as the style says that is in force."""
    values: list[str] = words.evaluate_all(
        "words => words.map(word => getComputedStyle(word).getPropertyValue('--weight'))"
    )
    return [float(value) for value in values]


def focused(page: Page) -> tuple[str, int]:
    side, index = page.evaluate("Object.values({...document.activeElement.dataset}).slice(0, 2)")
    return side, int(index)


def test_pointing_at_a_word_lights_what_it_looked_at_by_weight(page: Page) -> None:
    weights = data_of(page)[0]["hypotheses"][0]["words"]["weights"]
    for index, row in enumerate(weights):
        words(page, "target").nth(index).hover()
        assert weights_shown(words(page, "source")) == row
    for index, column in enumerate(zip(*weights, strict=True)):
        words(page, "source").nth(index).hover()
        assert weights_shown(words(page, "target")) == list(column)


def test_a_brighter_word_is_one_that_was_looked_at_more(page: Page) -> None:
    row = data_of(page)[0]["hypotheses"][0]["words"]["weights"][0]
    best, least = row.index(max(row)), row.index(min(row))
    words(page, "target").first.hover()
    strong, weak = (
        words(page, "source").nth(at).evaluate("word => getComputedStyle(word).backgroundColor")
        for at in (best, least)
    )
    assert strong != weak


def test_what_lights_up_is_also_told_in_words(page: Page) -> None:
    hypothesis = data_of(page)[0]["hypotheses"][0]["words"]
    (source, target) = next(iter(hypothesis["pairs"]))
    words(page, "target").nth(target).hover()
    told = page.locator(".told").first
    assert told.get_attribute("aria-live") == "polite"
    percent = round(100 * hypothesis["weights"][target][source])
    assert (
        f"{words(page, 'source').nth(source).text_content()} {percent}\u00a0%" in told.inner_text()
    )


def test_nothing_is_lit_when_the_pointer_has_left(page: Page) -> None:
    words(page, "target").first.hover()
    page.locator("h1").hover()
    assert set(weights_shown(words(page, "source"))) == {0.0}


def test_the_arrow_keys_go_along_a_line_and_across_to_the_strongest_word(page: Page) -> None:
    weights = data_of(page)[0]["hypotheses"][0]["words"]["weights"]
    words(page, "target").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert focused(page) == ("target", 2)
    assert weights_shown(words(page, "source")) == weights[2]
    page.keyboard.press("ArrowUp")
    assert focused(page) == ("source", weights[2].index(max(weights[2])))
    page.keyboard.press("End")
    assert focused(page) == ("source", len(weights[0]) - 1)
    page.keyboard.press("ArrowRight")
    assert focused(page) == ("source", len(weights[0]) - 1)


def test_tab_reaches_each_line_once_and_shows_where_it_is(page: Page) -> None:
    words(page, "source").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Tab")
    assert focused(page) == ("target", 0)
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    page.keyboard.press("Shift+Tab")
    assert focused(page) == ("source", 1)


def test_in_a_line_from_right_to_left_the_left_key_goes_on(page: Page, tmp_path: Path) -> None:
    page.goto(write_page(tmp_path / "page.html", RIGHT_TO_LEFT).as_uri())
    first, second = (words(page, "target").nth(index).bounding_box() for index in (0, 1))
    assert first and second and second["x"] < first["x"]
    words(page, "target").first.focus()
    page.keyboard.press("ArrowLeft")
    assert focused(page) == ("target", 1)


def test_another_hypothesis_is_chosen_by_key_and_brings_its_own_weights(page: Page) -> None:
    hypotheses = data_of(page)[0]["hypotheses"]
    tabs = page.locator(".sentence").first.get_by_role("tab")
    assert tabs.count() == len(hypotheses) == 3
    tabs.first.focus()
    page.keyboard.press("ArrowRight")
    assert tabs.nth(1).get_attribute("aria-selected") == "true"
    line = page.locator(".sentence").first.locator(".target")
    assert (line.text_content() or "").startswith(hypotheses[1]["text"])
    words(page, "target").first.hover()
    assert weights_shown(words(page, "source")) == hypotheses[1]["words"]["weights"][0]


def test_pieces_of_words_have_weights_of_their_own(page: Page) -> None:
    pieces = data_of(page)[0]["hypotheses"][0]["pieces"]
    page.get_by_label("pieces of words").check()
    assert words(page, "target").count() == len(pieces["weights"])
    words(page, "target").last.hover()
    assert weights_shown(words(page, "source")) == pieces["weights"][-1]


def test_every_sentence_is_there_and_one_lights_up_alone(page: Page) -> None:
    assert page.locator(".sentence").count() == 3
    assert "not translated" in page.locator(".sentence").last.inner_text()
    words(page, "target", 1).first.hover()
    assert max(weights_shown(words(page, "source", 1))) > 0
    assert set(weights_shown(words(page, "source", 0))) == {0.0}


def test_a_text_that_looks_like_markup_is_shown_and_never_run(page: Page, tmp_path: Path) -> None:
    answer = answer_of([HOSTILE, " ", "cat"], [HOSTILE], [[0.5, 0.3, 0.2]])
    page.goto(write_page(tmp_path / "page.html", answer).as_uri())
    words(page, "target").first.hover()
    assert words(page, "target").first.inner_text() == HOSTILE
    assert page.locator("img").count() == 0
    assert page.evaluate("window.hit") is None


def test_its_policy_lets_no_script_reach_the_network(browser: Browser, real_page: Path) -> None:
    page = browser.new_page()
    page.goto(real_page.as_uri())
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(Error, match="Failed to fetch"):
            page.evaluate(f"fetch('http://127.0.0.1:{port}/')")
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_on_the_brightest_mark(scheme: Any, page: Page, tmp_path: Path) -> None:
    """A contrast of 4.5 to 1 (WCAG 2.2, criterion 1.4.3)."""
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.goto(write_page(tmp_path / "page.html", answer_of(["a"], ["b"], [[1, 0]])).as_uri())
    words(page, "target").first.hover()
    colours = words(page, "source").first.evaluate(
        """word => {
            const options = { willReadFrequently: true };
            const canvas = document.createElement("canvas").getContext("2d", options);
            const { color, backgroundColor } = getComputedStyle(word);
            return [color, backgroundColor].map((colour) => {
                canvas.fillStyle = colour;
                canvas.fillRect(0, 0, 1, 1);
                return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
            });
        }"""
    )
    light, dark = sorted(map(luminance, colours), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def luminance(colour: list[int]) -> float:
    """Relative luminance of sRGB, as WCAG 2.2 defines it."""
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (v / 255 for v in colour)
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_page_fits_a_phone(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_on_paper_the_whole_matrix_is_shown_and_no_controls(page: Page) -> None:
    page.emulate_media(media="print")
    assert not page.locator(".grain").is_visible()
    matrix = page.locator(".matrix").first
    assert matrix.is_visible()
    assert matrix.evaluate("matrix => getComputedStyle(matrix).overflowX") == "visible"
