"""Measurements as rows, and rows as a table."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby


@dataclass(frozen=True, slots=True)
class Row:
    """What one system did in one case of a workload; the names of `values` carry their units."""

    workload: str
    case: str
    system: str
    values: Mapping[str, float | str] = field(default_factory=dict)


def format_table(rows: Sequence[Row]) -> str:
    """Each workload with the columns that it has, in the order in which they first appear."""
    sections = groupby(rows, key=lambda row: row.workload)
    return "\n\n".join("\n".join(_section(name, list(group))) for name, group in sections)


def _section(workload: str, rows: Sequence[Row]) -> Iterator[str]:
    columns = list(dict.fromkeys(name for row in rows for name in row.values))
    cells = [[workload, "system", *columns]]
    for row in rows:
        values = [_cell(row.values[name]) if name in row.values else "" for name in columns]
        cells.append([row.case, row.system, *values])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for number, line in enumerate(cells):
        left = [cell.ljust(width) for cell, width in zip(line[:2], widths[:2], strict=True)]
        right = [cell.rjust(width) for cell, width in zip(line[2:], widths[2:], strict=True)]
        yield "  ".join([*left, *right]).rstrip()
        if number == 0:
            yield "  ".join("-" * width for width in widths)


def _cell(value: float | str) -> str:
    """Three significant digits, and every digit of what has more before the point."""
    if isinstance(value, str):
        return value
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"
