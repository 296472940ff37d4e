"""Groups of flags: where a command works, what it does to texts and files, how it searches."""

import argparse

from service.config import DEFAULT_ADDRESS, path


def add_where(parser: argparse.ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--server", default=DEFAULT_ADDRESS, metavar="ADDRESS", help="default %(default)s"
    )
    where.add_argument(
        "--models", type=path, metavar="DIR", help="work in this process, without a server"
    )


def add_text(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what happens to a text: docs/text.md")
    group.add_argument(
        "--whole-lines", action="store_true", help="don't split lines into sentences"
    )
    group.add_argument(
        "--refuse-long",
        action="store_true",
        help="fail rather than split a sentence that is longer than the model takes",
    )
    group.add_argument(
        "--no-break-spaces", action="store_true", help="as in printed French, before ; : ! ?"
    )
    group.add_argument("--html", action="store_true", help="texts are HTML")
    group.add_argument(
        "--protect",
        action="append",
        default=[],
        choices=["placeholder", "address", "number", "tag"],
        help="keep these as they are, beside addresses, and tags in HTML, which always are; may be"
        " given several times",
    )
    group.add_argument(
        "--term",
        action="append",
        default=[],
        type=lambda term: term.partition("="),
        metavar="SOURCE=TARGET",
        help="translate a term so; may be given several times",
    )


def add_files(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("files of any size, line by line: docs/bulk.md")
    group.add_argument(
        "--output",
        metavar="PATH",
        help="translate the files that are named instead of texts, to this file or folder; a file"
        " that was begun is gone on with",
    )
    group.add_argument(
        "--format", choices=["text", "tsv", "jsonl"], help="of the files; default: by their names"
    )
    group.add_argument("--column", type=int, metavar="N", help="TSV: of the text (default 1)")
    group.add_argument("--field", metavar="NAME", help="JSONL: of the text (default text)")
    group.add_argument(
        "--into", metavar="NAME", help="JSONL: field for the translation (default translation)"
    )
    group.add_argument(
        "--replace", action="store_true", help="TSV, JSONL: put it in the place of the text"
    )
    group.add_argument(
        "--scores", action="store_true", help="JSONL: add the sentences with their scores"
    )
    group.add_argument("--shard", metavar="I/N", help="only share I, from 0, of N of each file")
    group.add_argument("--in-flight", type=int, metavar="N", help="requests at once (default 8)")
    group.add_argument(
        "--strict", action="store_true", help="stop at the first line that can't be translated"
    )


def add_search(parser: argparse.ArgumentParser) -> None:
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


def add_access(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("how to reach the server, in plaintext by default")
    group.add_argument("--tls", action="store_true", help="trust what the system trusts")
    group.add_argument(
        "--ca", type=path, metavar="FILE", help="TLS: trust the authorities in this PEM file"
    )
    group.add_argument(
        "--certificate", type=path, metavar="FILE", help="PEM file of your own certificate chain"
    )
    group.add_argument("--key", type=path, metavar="FILE", help="PEM file of its private key")
    group.add_argument(
        "--tls-server-name",
        default="",
        metavar="NAME",
        help="the name in the server's certificate, if it isn't that of the address",
    )
    group.add_argument(
        "--token-file", type=path, metavar="FILE", help="your token; NMT_TOKEN may hold it as well"
    )
