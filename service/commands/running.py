"""Runs a command with its parsed arguments; returns its exit code, or nothing if that is 0.

Each imports what it needs: a client needs no onnxruntime.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from service.config import given_flags

PROGRAM = "python -m service"


def serve(options: argparse.Namespace) -> None:
    _quieten_grpc()
    from service.server import run

    run(given_flags(options), os.environ, options.config)


def translate(options: argparse.Namespace) -> int | None:
    _quieten_grpc()
    with _failing("translate"):
        if options.output is None:
            from service.client.command import translate

            translate(options)
            return None
        from service.client.bulk.command import translate_files

        return translate_files(options)


def score(options: argparse.Namespace) -> None:
    _quieten_grpc()
    from service.client.score import score

    with _failing("score"):
        score(options)


def admin(options: argparse.Namespace) -> int:
    _quieten_grpc()
    from service.client.admin import admin

    return admin(options)


def health(options: argparse.Namespace) -> int:
    _quieten_grpc()
    from service.client.health import health

    return health(options)


def _quieten_grpc() -> None:
    """What its library would say of connections, errors and the log say; read at its import."""
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")


@contextmanager
def _failing(command: str) -> Iterator[None]:
    """Ends the program with exit code 1 if the streams or files of a command fail."""
    try:
        yield
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        print(f"{PROGRAM} {command}: {place}{error.strerror or error}", file=sys.stderr)
        sys.exit(1)
