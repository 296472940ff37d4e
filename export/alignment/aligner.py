"""Links of words as eflomal finds them (Östling and Tiedemann 2016, "Efficient word alignment with
Markov chain Monte Carlo"), or as a file has them.

eflomal is a program beside ours, the extra `align`: it is run, not imported.
"""

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from export.alignment.reference import Links, Reference
from service.text.words import words
from training.data import Pair

# Where the environment that runs us has its programs.
_PROGRAM = Path(sys.executable).with_name("eflomal-align")


def is_installed() -> bool:
    """Whether there is an aligner to run."""
    return _PROGRAM.exists()


def references_of(
    pairs: Sequence[Pair], training: Sequence[Pair], links: Path | None = None
) -> list[Reference]:
    """The links of each pair, learned from `training` and the pairs themselves.

    links: a file that they are read from if it exists, and else written to, so that models can be
    compared by the same links: a line a pair, sure links, a tab, possible ones, each `0-0 1-2`.
    Raises ValueError if it has the links of other pairs, or if there is nothing to make them with.
    """
    if links and links.exists():
        return read_links(links, pairs)
    if not is_installed():
        raise ValueError("no aligner is installed; install the extra `align`, or give --links FILE")
    found = _align([*training, *pairs])[len(training) :]
    if links:
        lines = [f"{_pharaoh(each.sure)}\t{_pharaoh(each.possible)}\n" for each in found]
        links.write_text("".join(lines), encoding="utf-8")
    return found


def read_links(path: Path, pairs: Sequence[Pair]) -> list[Reference]:
    """The links that a file has of these pairs. Raises ValueError if it is about others."""
    lines = path.read_text("utf-8").splitlines()
    if len(lines) != len(pairs):
        raise ValueError(f"{path} has links of {len(lines)} pairs, and there are {len(pairs)}")
    found = []
    for number, (line, pair) in enumerate(zip(lines, pairs, strict=True), 1):
        try:
            sure, possible = map(_links, line.split("\t"))
        except ValueError:
            raise ValueError(f"{path}:{number} is not `0-0 1-2<TAB>0-0 1-2`") from None
        sizes = len(words(pair.source)), len(words(pair.target))
        if any(i >= sizes[0] or j >= sizes[1] for i, j in possible) or not sure <= possible:
            raise ValueError(f"{path}:{number} has the links of another pair")
        found.append(Reference(sure, possible))
    return found


def _align(pairs: Sequence[Pair]) -> list[Reference]:
    """Both directions of eflomal, which makes words lower case itself."""
    with tempfile.TemporaryDirectory() as scratch:
        files = {name: Path(scratch, name) for name in ("source", "target", "forward", "reverse")}
        files["source"].write_text("".join(_line(pair.source) for pair in pairs), "utf-8")
        files["target"].write_text("".join(_line(pair.target) for pair in pairs), "utf-8")
        options = (("-s", "source"), ("-t", "target"), ("-f", "forward"), ("-r", "reverse"))
        flags = [part for flag, name in options for part in (flag, str(files[name]))]
        try:
            subprocess.run([_PROGRAM, *flags], check=True, capture_output=True, text=True)
        except subprocess.CalledProcessError as error:
            raise ValueError(f"{_PROGRAM.name} failed: {error.stderr}") from error
        both = (files[name].read_text("utf-8").splitlines() for name in ("forward", "reverse"))
        links = [(_links(forward), _links(reverse)) for forward, reverse in zip(*both, strict=True)]
    return [Reference(forward & reverse, forward | reverse) for forward, reverse in links]


def _line(text: str) -> str:
    return " ".join(text[start:end] for start, end in words(text)) + "\n"


def _links(pharaoh: str) -> Links:
    ends = (pair.split("-") for pair in pharaoh.split())
    return frozenset((int(source), int(target)) for source, target in ends)


def _pharaoh(links: Links) -> str:
    return " ".join(f"{source}-{target}" for source, target in sorted(links))
