"""Translations and attention as text for a terminal."""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from service.pb import translation_pb2 as pb

_SHADES = " ░▒▓█"
_MIN_CELL_WIDTH = 2


@dataclass(frozen=True, slots=True)
class Style:
    """What to show of a translation.

    scores       a line for each hypothesis: score, tab, text
    attention    the matrix below each hypothesis, `max_width` terminal columns wide
    alignment    a line below each hypothesis: pairs of words as `0-0 1-2`, source first
    single_line  never more than one line a text: for output that is read line by line
    """

    scores: bool = False
    attention: bool = False
    alignment: bool = False
    single_line: bool = False
    max_width: int = 80
    colour: bool = False


def translation_lines(translation: pb.Translation, style: Style) -> Iterator[str]:
    """The lines that show a translation in a style."""
    text = translation.translated_text
    if not style.scores or translation.passed_through:
        yield _joined(text) if style.single_line else text
    for sentence in translation.sentences:
        for hypothesis in sentence.hypotheses:
            if style.scores:
                yield f"{hypothesis.score:.4f}\t{_joined(hypothesis.text)}"
            if style.alignment:
                yield hypothesis.alignment.pharaoh
            if style.attention:
                yield ""
                yield from attention_lines(hypothesis.attention, style.max_width, style.colour)


def attention_lines(attention: pb.Attention, max_width: int, colour: bool) -> Iterator[str]:
    """The matrix: a row for each target token, a column for each source token, dark to bright.

    Columns that don't fit in `max_width` continue in another block below.
    """
    labels = [printable(token.text) for token in attention.target_tokens]
    headers = [printable(token.text) for token in attention.source_tokens]
    label_width = max(map(display_width, labels), default=0)
    widths = [max(_MIN_CELL_WIDTH, display_width(header)) for header in headers]
    for columns in _blocks(widths, max_width - label_width):
        cells = (pad(headers[i], widths[i]) for i in columns)
        yield " ".join([" " * label_width, *cells]).rstrip()
        for row, label in enumerate(labels):
            weights = attention.weights[row * len(headers) :][: len(headers)]
            drawn = (_cell(weights[i], widths[i], colour) for i in columns)
            yield " ".join([pad(label, label_width, right=True), *drawn]).rstrip()
        yield ""


def display_width(text: str) -> int:
    """Terminal columns: 2 for wide characters, 0 for combining and invisible ones."""
    return sum(map(_character_width, text))


def pad(text: str, width: int, right: bool = False) -> str:
    """`text` in `width` terminal columns, to the left or to the right of them."""
    space = " " * (width - display_width(text))
    return space + text if right else text + space


def printable(text: str) -> str:
    """`text` without what would move the cursor or change the terminal's state."""
    return "".join(c if c.isprintable() or _character_width(c) == 0 else "�" for c in text)


def _joined(text: str) -> str:
    return " ".join(text.splitlines())


def _character_width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _blocks(widths: Sequence[int], max_width: int) -> Iterator[list[int]]:
    """Column indices in groups that fit, one space before each column; at least one a group."""
    block, used = list[int](), 0
    for index, width in enumerate(widths):
        if block and used + width + 1 > max_width:
            yield block
            block, used = [], 0
        block.append(index)
        used += width + 1
    if block:
        yield block


def _cell(weight: float, width: int, colour: bool) -> str:
    if colour:
        # 232 to 255 are the greys of a 256-colour terminal, black to white.
        return f"\x1b[48;5;{232 + round(weight * 23)}m{' ' * width}\x1b[0m"
    return _SHADES[round(weight * (len(_SHADES) - 1))] * width
