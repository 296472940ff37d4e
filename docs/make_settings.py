"""Writes the table of settings in docs/operations.md anew: `python -m docs.make_settings`.

Everything in it comes from `ServerConfig`: flags, variables, defaults, ranges and help.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from service.config import ServerConfig
from service.config.option import flag, variable

PAGE = Path(__file__).parent / "operations.md"
_HEADER = "| flag | variable | default | values | what it is |"
_TABLE = re.compile(re.escape(_HEADER) + r"\n(\|.*\n)*")
_KINDS = {bool: "`on`, `off`", str: "text", int: "whole number", float: "number"}


def with_settings(page: str) -> str:
    """The page with the table as it must be. Raises ValueError if the page has no table."""
    table = "\n".join([_HEADER, "|---|---|---|---|---|", *map(_row, fields(ServerConfig)), ""])
    written, count = _TABLE.subn(lambda _: table, page)
    if count != 1:
        raise ValueError(f"{PAGE} has {count} tables of settings")
    return written


def _row(option: Field[Any]) -> str:
    names = f"`{flag(option.name)}` | `{variable(option.name)}`"
    return f"| {names} | {_default(option)} | {_values(option)} | {option.metadata['help']} |"


def _default(option: Field[Any]) -> str:
    value = option.default
    if isinstance(value, bool):
        return "`on`" if value else "`off`"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return f"`{text}`" if text else ""


def _values(option: Field[Any]) -> str:
    if choices := option.metadata["choices"]:
        return ", ".join(f"`{choice}`" for choice in choices)
    return ", ".join(_kind_and_range(option))


def _kind_and_range(option: Field[Any]) -> Iterator[str]:
    low, high = option.metadata["low"], option.metadata["high"]
    yield option.metadata["metavar"].lower() or _KINDS.get(type(option.default), "path")
    if high < math.inf:
        yield f"{low:g} to {high:.15g}"
    elif low > -math.inf:
        yield f"at least {low:g}"


if __name__ == "__main__":
    PAGE.write_text(with_settings(PAGE.read_text()))
