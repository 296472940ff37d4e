"""What each command may be given."""

import argparse
from importlib.metadata import version

from service.commands import running
from service.commands.check import check
from service.commands.flags import add_access, add_files, add_search, add_text, add_where
from service.config import add_flags, path

DEFAULT_ADMIN_ADDRESS = "localhost:50052"


def parser() -> argparse.ArgumentParser:
    """Of all commands; `run` of what it parses runs the command that was given."""
    program = argparse.ArgumentParser(
        prog=running.PROGRAM, description="Neural machine translation."
    )
    program.add_argument("--version", action="version", version=version("attention-nmt"))
    commands = program.add_subparsers(metavar="COMMAND", required=True)
    serve = commands.add_parser(
        "serve",
        help="serve the bundles of a directory over gRPC",
        description="Serve the bundles of a directory over gRPC, with Prometheus metrics. Each "
        "flag can be set by the variable in brackets, or in a file; the flag wins.",
    )
    add_flags(serve)
    serve.set_defaults(run=running.serve)
    _add_translate(commands.add_parser("translate", help="translate texts, or lines of stdin"))
    _add_score(commands.add_parser("score", help="say how probable a model finds translations"))
    checking = commands.add_parser("check", help="verify and try out the bundles of a directory")
    checking.add_argument("models", type=path, metavar="MODELS_DIR")
    checking.set_defaults(run=check)
    _add_admin(
        commands.add_parser("admin", help="list, reload and unload a running server's models")
    )
    _add_health(commands.add_parser("health", help="ask a server whether it serves"))
    return program


def _add_translate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "texts",
        nargs="*",
        metavar="TEXT",
        help="without any, lines of stdin; names of files with --output",
    )
    parser.add_argument("--model", default="", help="name of the model (default: by languages)")
    parser.add_argument("--from", dest="source", default="", metavar="LANGUAGE", help="BCP 47")
    parser.add_argument("--to", dest="target", default="", metavar="LANGUAGE", help="BCP 47")
    parser.add_argument("--attention", action="store_true", help="draw where the model looked")
    parser.add_argument(
        "--page", type=path, metavar="FILE", help="write that as a web page to look at (HTML)"
    )
    parser.add_argument(
        "--png", type=path, metavar="FILE", help="write that as a picture; needs the extra `plot`"
    )
    parser.add_argument(
        "--alignment", action="store_true", help="print which word comes from which, as `0-0 1-2`"
    )
    add_where(parser)
    add_text(parser)
    add_files(parser)
    add_search(parser)
    add_access(parser)
    parser.set_defaults(run=running.translate)


def _add_score(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--source", metavar="TEXT", help="without, lines of stdin: source, tab, target"
    )
    parser.add_argument(
        "--target", action="append", metavar="TEXT", help="of that; may be given several times"
    )
    parser.add_argument("--model", default="", help="name of the model (default: by languages)")
    parser.add_argument(
        "--from", dest="source_language", default="", metavar="LANGUAGE", help="BCP 47"
    )
    parser.add_argument(
        "--to", dest="target_language", default="", metavar="LANGUAGE", help="BCP 47"
    )
    parser.add_argument("--tokens", action="store_true", help="show the tokens of lines as well")
    parser.add_argument("--attention", action="store_true", help="draw where the model looked")
    for flag in ("--length-penalty", "--coverage-penalty"):
        parser.add_argument(flag, type=float, metavar="A", help="of the score, as in a search")
    add_where(parser)
    add_access(parser)
    parser.set_defaults(run=running.score)


def _add_admin(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--server", default=DEFAULT_ADMIN_ADDRESS, metavar="ADDRESS", help="default %(default)s"
    )
    add_access(parser)
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    commands.add_parser("list", help="show every bundle and how it stands")
    commands.add_parser("reload", help="look at the models directory now")
    unload = commands.add_parser("unload", help="serve a version no longer")
    unload.add_argument("model", metavar="MODEL", help="its name")
    unload.add_argument(
        "version", metavar="VERSION", nargs="?", default="", help="default: the only one"
    )
    parser.set_defaults(run=running.admin)


def _add_health(parser: argparse.ArgumentParser) -> None:
    parser.description = "Ask a server whether it serves; exit code 0: it does, 1: it doesn't."
    parser.add_argument(
        "--server", metavar="ADDRESS", help="default: where NMT_* has a server listen"
    )
    parser.add_argument(
        "--name", default="", help="a model, or `liveness` (default: the whole server)"
    )
    add_access(parser)
    parser.set_defaults(run=running.health)
