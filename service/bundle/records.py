"""Strict JSON into frozen dataclasses: the fields of the class are the schema.

Owns types, unknown, missing and repeated keys. What values mean is the business of the classes: a
`Record` says what is wrong with its own. Every fault is noted, with the path to its value, before
anything is given up: a part that can't be built doesn't hide the faults of its neighbours.
"""

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

MAX_DIGITS = 18  # of an integer, so that it has 64 bits and fits a float

_DESCRIPTIONS = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}
_INVALID = object()


class Record:
    """Base of a dataclass whose JSON form is an object with one key for each field."""

    def faults(self) -> Iterator[str]:
        """What is wrong with the values, each fault beginning with the name of its field."""
        return iter(())


AnyRecord = TypeVar("AnyRecord", bound=Record)


def parse_json(data: bytes) -> Any:
    """Parse a JSON document more strictly than `json` does.

    Raises:
        ValueError: for what isn't UTF-8 or JSON, lone surrogates, NaN and infinity, repeated keys,
            integers of more than 18 digits, and nesting too deep to follow.
    """
    try:
        document = json.loads(data.decode(), object_pairs_hook=_unique, parse_int=_parse_integer)
        json.dumps(document, allow_nan=False, ensure_ascii=False).encode()
    except RecursionError as exc:
        raise ValueError("nested too deeply") from exc
    return document


def to_json(record: Record) -> str:
    """Return the JSON form, always the same for equal records."""
    assert dataclasses.is_dataclass(record)
    document = dataclasses.asdict(record)
    return (
        json.dumps(document, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    )


def read_record(cls: type[AnyRecord], document: Any) -> tuple[AnyRecord | None, list[str]]:
    """Return the record and all its faults; it is None if it couldn't be built."""
    faults: list[str] = []
    record = _read(cls, document, "", faults)
    return (None if record is _INVALID else record), faults


def _read(hint: Any, value: Any, path: str, faults: list[str]) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if dataclasses.is_dataclass(hint) and isinstance(value, dict):
        return _read_fields(hint, value, path, faults)
    if origin is tuple and isinstance(value, list):
        items = [_read(arguments[0], v, f"{path}[{i}]", faults) for i, v in enumerate(value)]
        return _INVALID if _INVALID in items else tuple(items)
    if origin is Mapping and isinstance(value, dict):
        entries = {k: _read(arguments[1], v, f"{path}[{k!r}]", faults) for k, v in value.items()}
        return _INVALID if _INVALID in entries.values() else entries
    if hint is float and type(value) is int:
        return float(value)
    # By `type`, since to `isinstance` true is an integer.
    if hint is Any or type(value) in _scalars(hint):
        return value
    faults.append(f"{path or 'document'} is {_shorten(value)}, must be {_describe(hint)}")
    return _INVALID


def _read_fields(cls: Any, value: dict[str, Any], path: str, faults: list[str]) -> Any:
    prefix = f"{path}." if path else ""
    hints = get_type_hints(cls)
    missing = [f.name for f in dataclasses.fields(cls) if _is_required(f) and f.name not in value]
    faults += [f"{prefix}{name} is missing" for name in missing]
    faults += [f"{prefix}{key} is not a known key" for key in value if key not in hints]
    fields = {k: _read(hints[k], v, prefix + k, faults) for k, v in value.items() if k in hints}
    if missing or _INVALID in fields.values():
        return _INVALID
    record = cls(**fields)
    faults += [prefix + fault for fault in record.faults()]
    return record


def _is_required(field: "dataclasses.Field[Any]") -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _describe(hint: Any) -> str:
    if get_origin(hint) is tuple:
        return "a list"
    if get_origin(hint) is Mapping or dataclasses.is_dataclass(hint):
        return "an object"
    return " or ".join(_DESCRIPTIONS[scalar] for scalar in _scalars(hint))


def _scalars(hint: Any) -> tuple[type, ...]:
    return get_args(hint) if isinstance(hint, UnionType) else (hint,)


def _shorten(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:60] + "…"


def _unique(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    document: dict[str, Any] = {}
    for key, value in pairs:
        if key in document:
            raise ValueError(f"key {key!r} is repeated")
        document[key] = value
    return document


def _parse_integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError(f"integer of {len(digits)} digits, at most {MAX_DIGITS} are read")
    return int(digits)
