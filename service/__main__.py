"""The command line: `python -m service serve | translate | check | admin | health`.

Exit codes: 0 done, 1 it failed, 2 it was asked for something wrong. Errors go to stderr.
"""

import argparse
import logging
import os
import signal
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from service.config import DEFAULT_ADDRESS, add_flags, given_flags
from service.errors import BundleError, ConfigError, StartupError, TranslationError
from service.logs import say

# The rest is imported by the command that needs it: a client needs no onnxruntime.
if TYPE_CHECKING:
    from service.bundle import Bundle

PROGRAM = "python -m service"
DEFAULT_ADMIN_ADDRESS = "localhost:50052"
_COLUMNS = ("NAME", "VERSION", "LANGUAGES", "ARCHITECTURE", "PRECISIONS", "MIB")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns its exit code."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options) or 0)
    except StartupError as error:
        for fault in error.faults:
            say(f"{error.subject}: {fault}", sys.stderr, logging.ERROR)
        return 2 if isinstance(error, ConfigError) else 1
    except TranslationError as error:
        print(f"{error.status}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=PROGRAM, description="Neural machine translation.")
    parser.add_argument("--version", action="version", version=version("attention-nmt"))
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    serve = commands.add_parser(
        "serve",
        help="serve the bundles of a directory over gRPC",
        description="Serve the bundles of a directory over gRPC, with Prometheus metrics. Each "
        "flag can be set by the variable in brackets, or in a file; the flag wins.",
    )
    add_flags(serve)
    serve.set_defaults(run=_serve)
    _add_translate(commands.add_parser("translate", help="translate texts, or lines of stdin"))
    check = commands.add_parser("check", help="verify and try out the bundles of a directory")
    check.add_argument("models", type=Path, metavar="MODELS_DIR")
    check.set_defaults(run=_check)
    _add_admin(
        commands.add_parser("admin", help="list, reload and unload a running server's models")
    )
    _add_health(commands.add_parser("health", help="ask a server whether it serves"))
    return parser


def _add_translate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("texts", nargs="*", metavar="TEXT", help="without any, lines of stdin")
    parser.add_argument("--model", default="", help="name of the model (default: by languages)")
    parser.add_argument("--from", dest="source", default="", metavar="LANGUAGE", help="BCP 47")
    parser.add_argument("--to", dest="target", default="", metavar="LANGUAGE", help="BCP 47")
    parser.add_argument("--attention", action="store_true", help="draw where the model looked")
    parser.add_argument(
        "--alignment", action="store_true", help="print which word comes from which, as `0-0 1-2`"
    )
    parser.add_argument(
        "--whole-lines", action="store_true", help="don't split lines into sentences"
    )
    parser.add_argument(
        "--refuse-long",
        action="store_true",
        help="fail rather than split a sentence that is longer than the model takes",
    )
    parser.add_argument(
        "--no-break-spaces", action="store_true", help="as in printed French, before ; : ! ?"
    )
    parser.add_argument("--html", action="store_true", help="texts are HTML")
    parser.add_argument(
        "--protect",
        action="append",
        default=[],
        choices=["placeholder", "address", "number", "tag"],
        help="keep these as they are, beside addresses, and tags in HTML, which always are; may be"
        " given several times",
    )
    parser.add_argument(
        "--term",
        action="append",
        default=[],
        type=lambda term: term.partition("="),
        metavar="SOURCE=TARGET",
        help="translate a term so; may be given several times",
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--server", default=DEFAULT_ADDRESS, metavar="ADDRESS", help="default %(default)s"
    )
    where.add_argument(
        "--models", type=Path, metavar="DIR", help="translate in this process, without a server"
    )
    _add_search(parser)
    _add_access(parser)
    parser.set_defaults(run=_translate)


def _add_search(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how to search, by default as the model says")
    group.add_argument("--beam-size", type=int, metavar="N", help="1 is greedy search")
    group.add_argument("--n-best", type=int, metavar="N", help="print N translations with scores")
    group.add_argument("--prefix", metavar="TEXT", help="what the translation begins with")
    group.add_argument(
        "--alternatives", type=int, metavar="N", help="print N that begin otherwise after that"
    )
    group.add_argument(
        "--suppress",
        action="append",
        default=[],
        metavar="TEXT",
        help="what must not come in it; may be given several times",
    )
    for flag, kind, metavar, help in (
        ("--length-penalty", float, "A", "score by log-probability / length ^ A"),
        ("--max-length", int, "N", "tokens at most"),
        ("--repetition-penalty", float, "X", "above 1: say less again"),
        ("--no-repeat-ngram-size", int, "N", "let no N tokens in a row come twice"),
        ("--sampling-temperature", float, "T", "draw at random; 1 as the model would"),
        ("--sampling-top-k", int, "K", "draw from the K likeliest tokens only"),
        ("--sampling-top-p", float, "P", "draw from those that have probability P together"),
        ("--sampling-seed", int, "N", "draw the same for the same number"),
    ):
        group.add_argument(flag, type=kind, metavar=metavar, help=help)


def _add_admin(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--server", default=DEFAULT_ADMIN_ADDRESS, metavar="ADDRESS", help="default %(default)s"
    )
    _add_access(parser)
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    commands.add_parser("list", help="show every bundle and how it stands")
    commands.add_parser("reload", help="look at the models directory now")
    unload = commands.add_parser("unload", help="serve a version no longer")
    unload.add_argument("model", metavar="MODEL", help="its name")
    unload.add_argument(
        "version", metavar="VERSION", nargs="?", default="", help="default: the only one"
    )
    parser.set_defaults(run=_admin)


def _add_health(parser: argparse.ArgumentParser) -> None:
    parser.description = "Ask a server whether it serves; exit code 0: it does, 1: it doesn't."
    parser.add_argument(
        "--server", metavar="ADDRESS", help="default: where NMT_* has a server listen"
    )
    parser.add_argument(
        "--name", default="", help="a model, or `liveness` (default: the whole server)"
    )
    _add_access(parser)
    parser.set_defaults(run=_health)


def _add_access(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how to reach the server, in plaintext by default")
    group.add_argument("--tls", action="store_true", help="trust what the system trusts")
    group.add_argument(
        "--ca", type=Path, metavar="FILE", help="TLS: trust the authorities in this PEM file"
    )
    group.add_argument(
        "--certificate", type=Path, metavar="FILE", help="PEM file of your own certificate chain"
    )
    group.add_argument("--key", type=Path, metavar="FILE", help="PEM file of its private key")
    group.add_argument(
        "--tls-server-name",
        default="",
        metavar="NAME",
        help="the name in the server's certificate, if it isn't that of the address",
    )
    group.add_argument(
        "--token-file", type=Path, metavar="FILE", help="your token; NMT_TOKEN may hold it as well"
    )


def _serve(options: argparse.Namespace) -> None:
    _quieten_grpc()
    from service.server import run

    run(given_flags(options), os.environ, options.config)


def _translate(options: argparse.Namespace) -> int:
    _quieten_grpc()
    from service.client.command import translate

    try:
        translate(options)
    except OSError as error:
        print(f"{PROGRAM} translate: {error.strerror or error}", file=sys.stderr)
        return 1
    return 0


def _admin(options: argparse.Namespace) -> int:
    _quieten_grpc()
    from service.client.admin import admin

    return admin(options)


def _health(options: argparse.Namespace) -> int:
    _quieten_grpc()
    from service.client.health import health

    return health(options)


def _quieten_grpc() -> None:
    """What its library would say of connections, errors and the log say; read at its import."""
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")


def _check(options: argparse.Namespace) -> int:
    from service.catalog.folders import bundle_folders
    from service.catalog.loading import repeated_versions
    from service.client.admin import table

    folders = bundle_folders(options.models)
    bundles = [bundle for folder in folders if (bundle := _check_bundle(folder))]
    for line in table([_COLUMNS, *map(_row, bundles)]):
        print(line)
    for fault in (faults := list(repeated_versions(bundles))):
        print(f"{options.models}: {fault}", file=sys.stderr)
    return 1 if faults or len(bundles) < len(folders) else 0


def _check_bundle(folder: Path) -> "Bundle | None":
    """The bundle, if it is good, else None; then its faults are on stderr."""
    from service.bundle import read_bundle
    from service.catalog.loading import try_out

    try:
        bundle = read_bundle(folder)
        try_out(bundle)
    except BundleError as error:
        print(*(f"{folder}: {fault}" for fault in error.faults), sep="\n", file=sys.stderr)
        return None
    return bundle


def _row(bundle: "Bundle") -> Sequence[str]:
    manifest = bundle.manifest
    languages, precisions = " to ".join(manifest.languages), ",".join(manifest.precisions)
    size = sum(record.size for record in manifest.files.values()) / 2**20
    named = manifest.name, manifest.version, languages, manifest.architecture
    return *named, precisions, f"{size:.1f}"


if __name__ == "__main__":
    sys.exit(main())
