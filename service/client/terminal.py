"""Translations and attention as text for a terminal.

Columns stand below each other in every script: widths are those of `wcwidth`, and a label that is
written from right to left does not reorder its row in a terminal that would.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from service.pb import translation_pb2 as pb

_SHADES = " ░▒▓█"
# In colour: bars, in an amber that can be seen on a dark background and on a light one.
_BARS = " ▁▂▃▄▅▆▇█"
_AMBER = "\x1b[38;5;172m"
_PLAIN = "\x1b[0m"
_LEFT_TO_RIGHT_MARK = "\u200e"
# Embeddings, overrides and isolates would go on behind the label that they are in.
_DIRECTING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
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
    """The matrix: a row for each target token, a column for each source token.

    A weight is a shade; in colour, the height of a bar.

    Columns that don't fit in `max_width` continue in another block below.
    """
    labels = [_label(token.text) for token in attention.target_tokens]
    headers = [_label(token.text) for token in attention.source_tokens]
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
    """Terminal columns: 2 for wide characters and emoji, 0 for combining and invisible ones."""
    import wcwidth  # large tables, which a translation without a matrix doesn't need

    return wcwidth.width(text)


def pad(text: str, width: int, right: bool = False) -> str:
    """`text` in `width` terminal columns, to the left or to the right of them."""
    space = " " * (width - display_width(text))
    return space + text if right else text + space


def printable(text: str) -> str:
    """`text` without what would move the cursor or change the terminal's state."""
    return "".join(c if _is_harmless(c) else "�" for c in text)


def _joined(text: str) -> str:
    return " ".join(text.splitlines())


def _is_harmless(character: str) -> bool:
    if character in _DIRECTING:
        return False
    return character.isprintable() or unicodedata.category(character) in ("Mn", "Me", "Cf")


def _label(text: str) -> str:
    """Between marks: right-to-left labels on one row would change places without."""
    shown = printable(text)
    if any(unicodedata.bidirectional(character) in ("R", "AL", "AN") for character in shown):
        return f"{_LEFT_TO_RIGHT_MARK}{shown}{_LEFT_TO_RIGHT_MARK}"
    return shown


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
    shades = _BARS if colour else _SHADES
    drawn = shades[round(weight * (len(shades) - 1))] * width
    return f"{_AMBER}{drawn}{_PLAIN}" if colour and not drawn.isspace() else drawn
