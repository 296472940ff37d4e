"""Writes what README.md shows anew, with the bundles in models/: `python docs/make_readme.py`.

The commands stand in the page's console blocks; what follows each is replaced by what it prints
now. Needs the ports that `make serve` takes, and `buf` beside this Python.
"""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "README.md"
_SERVICE = (sys.executable, "-m", "service")
_BUF = Path(sys.executable).with_name("buf")
_TABLE = re.compile(r"\| model \| greedy .*?Signature: `[^`]*`\.", re.DOTALL)
_TEXT = "I lost my umbrella on the train yesterday."
_URL = "http://localhost:50051/nmt.v1.TranslationService/Translate"


def with_output(page: str, command: str, output: str) -> str:
    """The page with another output after the last line of a command, which it must have once."""
    line = rf"^.*{re.escape(command)}.*\n"
    pattern = re.compile(rf"({line})(?:(?!```|\$ ).*\n)*", re.MULTILINE)
    page, count = pattern.subn(lambda match: f"{match[1]}{output.rstrip()}\n", page)
    assert count == 1, f"{command!r} is {count} times in the page"
    return page


def scores() -> str:
    """The table of BLEU, as the manifests have it."""
    rows, signature = [], ""
    for manifest in sorted(ROOT.glob("models/*/bundle.json"), reverse=True):
        bundle = json.loads(manifest.read_text())
        by_beam = bundle["provenance"]["scores"]["int8"]
        size = sum(file["size"] for file in bundle["files"].values()) / 1e6
        bleus = [f"{by_beam[beam]['bleu']:.1f}" for beam in ("beam_1", "beam_4")]
        rows.append(f"| `{bundle['name']}` | {' | '.join(bleus)} | {size:.1f} MB |\n")
        signature = by_beam["beam_4"]["signature"]
    heading = "| model | greedy | beam 4 | bundle |\n|---|--:|--:|--:|\n"
    return f"{heading}{''.join(rows)}\nSignature: `{signature}`."


@contextmanager
def serving(*flags: str) -> Iterator[str]:
    """A server with everything else at its default; its banner."""
    command = (*_SERVICE, "serve", *flags)
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline()
        finally:
            server.send_signal(signal.SIGTERM)


def _printed(*command: str) -> str:
    run = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return run.stdout


def main() -> None:
    page = PAGE.read_text()
    drawn = _printed(*_SERVICE, "translate", "--models", "models", "--attention", _TEXT)
    page = with_output(page, f'--attention "{_TEXT}"', drawn)
    with serving() as banner:
        page = with_output(page, "$ make serve", banner)
        curl = (str(_BUF), "curl", "--protocol", "grpc", "--http2-prior-knowledge")
        answer = _printed(*curl, "-d", '{"contents": ["I lost."]}', _URL)
        page = with_output(page, f"{_URL}    # the same with buf", answer)
        home = _printed(*_SERVICE, "translate", "I'm home.")
        page = with_output(page, '-m service translate "I\'m home."', home)
    PAGE.write_text(_TABLE.sub(lambda match: scores(), page))


if __name__ == "__main__":
    main()
