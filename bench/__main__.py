"""The command line: `python -m bench [WORKLOAD ...]`; docs/benchmarks.md says what is measured."""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from bench.corpus import ROOT, load_corpus
from bench.results import write_results
from bench.settings import Settings
from bench.table import Row, format_table
from bench.workloads.bahdanau import bahdanau
from bench.workloads.corpus import corpus
from bench.workloads.growth import growth
from bench.workloads.marian import marian
from bench.workloads.options import options as search_options
from bench.workloads.overload import overload
from bench.workloads.resources import resources, soak
from bench.workloads.server import server
from bench.workloads.single import single
from bench.workloads.text import text
from service.errors import StartupError, TranslationError

WORKLOADS: dict[str, Callable[[Settings], Iterator[Row]]] = {
    "corpus": corpus,
    "single": single,
    "text": text,
    "server": server,
    "overload": overload,
    "bahdanau": bahdanau,
    "options": search_options,
    "growth": growth,
    "marian": marian,
    "resources": resources,
    "soak": soak,
}
_ALL = "all"
_DEFAULT = [name for name in WORKLOADS if name != "soak"]
_QUICK_SENTENCES = 24


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs workloads, prints their rows as they come, writes all of them."""
    options = _parser().parse_args(arguments)
    try:
        settings = _settings(options)
    except (OSError, ValueError) as error:
        print(f"--sentences: {error}", file=sys.stderr)
        return 2
    rows, failed = [], False
    for name in _DEFAULT if _ALL in options.workloads else options.workloads:
        try:
            found = list(WORKLOADS[name](settings))
        except (StartupError, TranslationError) as error:
            print(f"{name}: {error}", file=sys.stderr)
            failed = True
            continue
        print(format_table(found), end="\n\n", flush=True)
        rows += found
        # After each, so that a fault hours later costs nothing.
        write_results(settings.results / f"{settings.name}.json", rows, settings.plain())
    return int(failed)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "workloads",
        nargs="*",
        metavar="WORKLOAD",
        default=_ALL,
        choices=[*WORKLOADS, _ALL],
        help=f"{', '.join(WORKLOADS)}; default: all but soak",
    )
    parser.add_argument("--models", type=Path, default=ROOT / "models", help="default models/")
    parser.add_argument("--sentences", type=Path, help="pairs as .tsv.gz, or one sentence a line")
    parser.add_argument("--results", type=Path, default=Settings.results, help="bench/results")
    parser.add_argument("--name", default=Settings.name, help="of the file there: NAME.json")
    parser.add_argument("--rounds", type=int, default=Settings.rounds, help="default %(default)s")
    parser.add_argument(
        "--seconds", type=float, default=Settings.seconds, help="of each load; default %(default)s"
    )
    parser.add_argument(
        "--minutes", type=float, default=Settings.minutes, help="of the soak; default %(default)s"
    )
    parser.add_argument("--quick", action="store_true", help="only to see that it works")
    return parser


def _settings(options: argparse.Namespace) -> Settings:
    settings = Settings(
        models=options.models,
        corpus=load_corpus(options.sentences),
        results=options.results,
        name=options.name,
        rounds=options.rounds,
        seconds=options.seconds,
        minutes=options.minutes,
    )
    if not options.quick:
        return settings
    few = settings.corpus.head(_QUICK_SENTENCES)
    return replace(settings, corpus=few, rounds=1, seconds=1.0, minutes=0.02, max_size=8)


if __name__ == "__main__":
    sys.exit(main())
