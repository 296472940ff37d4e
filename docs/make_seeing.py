"""Writes what docs/seeing.md shows anew: `python -m docs.make_seeing`.

The commands stand in the page; what follows each is replaced by what it prints now, with the
bundles in models/. The figures are of one sentence: what Chromium shows of the page, the picture.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, sync_playwright

from docs.make_readme import with_output

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "seeing.md"
FIGURES = ROOT / "docs" / "figures"
_SENTENCE = "I don't like the red cars that my brother bought."
_TRANSLATE = ("-m", "service", "translate", "--models", "models", "--from", "en", "--to", "fr")
_POINTED_AT = "mon"


def printed(*arguments: str) -> str:
    command = (sys.executable, *_TRANSLATE, *arguments)
    run = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return run.stdout


def take_figure(browser: Browser, page: Path, scheme: Literal["light", "dark"]) -> None:
    """The first sentence with a word pointed at, in light or dark colours."""
    shown = browser.new_page(
        viewport={"width": 920, "height": 1100}, color_scheme=scheme, reduced_motion="reduce"
    )
    shown.goto(page.as_uri())
    shown.locator(".target .word", has_text=_POINTED_AT).first.hover()
    end = shown.locator(".sentence").first.evaluate("node => node.getBoundingClientRect().bottom")
    clip = {"x": 0.0, "y": 0.0, "width": 920.0, "height": float(end)}
    shown.screenshot(path=FIGURES / f"attention-{scheme}.png", clip=clip)  # type: ignore[arg-type]
    shown.close()


def main() -> None:
    FIGURES.mkdir(exist_ok=True)
    text = with_output(
        PAGE.read_text(), f'--attention "{_SENTENCE}"', printed("--attention", _SENTENCE)
    )
    with tempfile.TemporaryDirectory() as folder:
        page, picture = Path(folder, "page.html"), FIGURES / "attention-matrix.png"
        files = ("--page", str(page), "--png", str(picture))
        scored = printed("--n-best", "3", *files, _SENTENCE)
        PAGE.write_text(with_output(text, f'--png matrix.png "{_SENTENCE}"', scored))
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
            take_figure(browser, page, "light")
            take_figure(browser, page, "dark")
            browser.close()


if __name__ == "__main__":
    main()
