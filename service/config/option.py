"""One field of the configuration: its names, how its value is read, and its range."""

import math
from collections.abc import Iterator
from dataclasses import Field, field
from pathlib import Path
from typing import Any

PREFIX = "NMT_"
_SWITCH = {"on": True, "true": True, "1": True, "off": False, "false": False, "0": False}
_EXPECTED = {bool: "true or false", int: "a whole number", float: "a number"}


def option(
    default: Any,
    help: str,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    choices: tuple[str, ...] = (),
    metavar: str = "",
) -> Any:
    """A field with all that its flag, its variable and its check need; bounds are inclusive."""
    meta = {"help": help, "low": low, "high": high, "choices": choices, "metavar": metavar}
    return field(default=default, metadata=meta)


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def variable(name: str) -> str:
    return PREFIX + name.upper()


def from_text(option: Field[Any], text: str) -> Any:
    """The value that a flag or a variable spells. Raises ValueError, saying what was expected."""
    kind: type[Any] = type(option.default)
    if kind is bool:
        if text.lower() not in _SWITCH:
            raise ValueError("expected on or off")
        return _SWITCH[text.lower()]
    if kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            raise ValueError(f"expected {_EXPECTED[kind]}") from None
    return _path(text) if issubclass(kind, Path) else text


def from_toml(option: Field[Any], value: object) -> Any:
    """The value of a key of a TOML file, whose type must fit. Raises ValueError."""
    kind: type[Any] = type(option.default)
    # True is an int in Python, and a whole number will do where any number does.
    fits = type(value) is kind or (kind is float and type(value) is int)
    if issubclass(kind, Path):
        fits = isinstance(value, str)
    if not fits:
        raise ValueError(f"expected {_EXPECTED.get(kind, 'a string')}")
    return _path(str(value)) if issubclass(kind, Path) else kind(value)


def shown(value: object) -> str:
    """A value that was given, as messages quote it."""
    return "empty" if value == "" else repr(value)


def _path(text: str) -> Path:
    if not text:
        raise ValueError("expected a path; . is the working directory")
    return Path(text)


def out_of_range(option: Field[Any], value: Any) -> Iterator[str]:
    """The fault of a value that its field doesn't take, if it is one."""
    meta = option.metadata
    if meta["choices"] and value not in meta["choices"]:
        yield f"{flag(option.name)} is {value!r}: expected {', '.join(meta['choices'])}"
    elif isinstance(value, (int, float)) and not meta["low"] <= value <= meta["high"]:
        bounds = f"at least {meta['low']:g}"
        if meta["high"] < math.inf:
            bounds += f" and at most {meta['high']:.15g}"
        yield f"{flag(option.name)} is {value}: expected {bounds}"
