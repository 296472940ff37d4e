"""Where values come from: flags over NMT_* variables over a TOML file; and what is no setting."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import Field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from service.config.option import PREFIX, flag, from_text, from_toml, shown, variable

FILE_VARIABLE = variable("config")
# The client's: whoever sets it for all that run on a machine sets it for a server too.
TOKEN_VARIABLE = variable("token")
# https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
_LINK_NAME = re.compile(
    r"NMT_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?"
    r"|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_PORT_NAME = re.compile(r"NMT_(\w+_)?PORT")
_LINK = re.compile(r"(tcp|udp|sctp)://")


def collect(
    options: Iterable[Field[Any]],
    flags: Mapping[str, str],
    environment: Mapping[str, str],
    file: Path | None,
) -> tuple[dict[str, Any], list[str]]:
    """The values that are given, by name of the field, and every fault of what gives them.

    Of a field that is given twice the weaker value is checked as well: it may win one day.
    """
    known = {option.name: option for option in options}
    links = service_links(environment)
    environment = {name: text for name, text in environment.items() if name not in links}
    if file is None and environment.get(FILE_VARIABLE):
        file = Path(environment[FILE_VARIABLE])
    values: dict[str, Any] = {}
    faults = list(_unknown_variables(environment, known))
    if file:
        from_file, file_faults = _read(file, known)
        values |= from_file
        faults += file_faults
    for option in known.values():
        for origin, text in _given(option.name, flags, environment):
            try:
                values[option.name] = from_text(option, text)
            except ValueError as error:
                faults.append(f"{origin} is {shown(text)}: {error}")
    return values, faults


def service_links(environment: Mapping[str, str]) -> list[str]:
    """The variables that Kubernetes sets for Services called `nmt` or `nmt-…`; no settings."""
    return sorted(
        name
        for name, value in environment.items()
        if _LINK_NAME.fullmatch(name) or (_PORT_NAME.fullmatch(name) and _LINK.match(value))
    )


def _read(file: Path, known: Mapping[str, Field[Any]]) -> tuple[dict[str, Any], list[str]]:
    try:
        keys = tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        return {}, [f"{file} can't be read: {error.strerror}"]
    except ValueError as error:  # of TOML's grammar, and of UTF-8
        return {}, [f"{file} is no TOML: {error}"]
    values: dict[str, Any] = {}
    faults = []
    for key, value in keys.items():
        try:
            values[key] = from_toml(known[key], value)
        except KeyError:
            faults.append(f"{file}: {key} is not a setting" + _hint(key, known))
        except ValueError as error:
            faults.append(f"{file}: {key} is {shown(value)}: {error}")
    return values, faults


def _given(
    name: str, flags: Mapping[str, str], environment: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Where a field is given, and the text; the strongest comes last."""
    if variable(name) in environment:
        yield variable(name), environment[variable(name)]
    if name in flags:
        yield flag(name), flags[name]


def _unknown_variables(
    environment: Mapping[str, str], known: Mapping[str, Field[Any]]
) -> Iterator[str]:
    names = {FILE_VARIABLE, *map(variable, known)}
    for name in sorted(environment):
        if name.startswith(PREFIX) and name not in {*names, TOKEN_VARIABLE}:
            yield f"{name} is not a setting" + _hint(name, names)


def _hint(name: str, known: Iterable[str]) -> str:
    hints = get_close_matches(name, known, n=1)
    return f"; did you mean {hints[0]}?" if hints else ""
