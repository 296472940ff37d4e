"""The configuration on the command line: a flag and a line of help for every field."""

import argparse
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from service.config.fields import ServerConfig
from service.config.option import flag, variable
from service.config.sources import FILE_VARIABLE


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Adds `--config`, which becomes the attribute `config`, and a flag for every field.

    `given_flags` reads the latter back.
    """
    parser.add_argument(
        "--config",
        type=path,
        metavar="FILE.toml",
        help="file whose keys are these settings, spelled as in max_rows = 64; variables and flags"
        f" win over it [{FILE_VARIABLE}]",
    )
    for option in fields(ServerConfig):
        default = _shown(option.default)
        parser.add_argument(
            flag(option.name),
            default=argparse.SUPPRESS,
            metavar=_metavar(option),
            help=f"{option.metadata['help']} (default {default}) [{variable(option.name)}]",
        )


def given_flags(arguments: argparse.Namespace) -> dict[str, str]:
    """The flags that were on the command line: text by field name."""
    names = {option.name for option in fields(ServerConfig)}
    return {name: text for name, text in vars(arguments).items() if name in names}


def path(text: str) -> Path:
    """For argparse: the path that an argument names; an empty one would be where we are."""
    if not text:
        raise argparse.ArgumentTypeError("is empty: expected a path; . is the working directory")
    return Path(text)


def _metavar(option: Field[Any]) -> str:
    if option.metadata["choices"]:
        return "|".join(option.metadata["choices"])
    names = {bool: "on|off", int: "N", float: "SECONDS", str: "TEXT"}
    return option.metadata["metavar"] or names.get(type(option.default), "PATH")


def _shown(value: object) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value) or "empty"
