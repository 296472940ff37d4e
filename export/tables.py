"""Tables of Markdown that are also read as they are."""

from collections.abc import Sequence


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows under headings, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    lines = (headings, ["-" * width for width in widths], *rows)
    return "\n".join(_line(cells, widths) for cells in lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return f"| {' | '.join(padded)} |"
