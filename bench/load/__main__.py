"""The load generator's command line.

python -m bench.load ADDRESS                                  capacity, a ramp, and the knee
python -m bench.load ADDRESS --rate 100 --seconds 10 --json   one load, open loop
python -m bench.load ADDRESS --concurrency 64 --json          one load, closed loop
"""

import argparse
import ipaddress
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from bench.load.drive import closed_loop, open_loop
from bench.load.plan import Traffic, poisson_arrivals
from bench.load.ramp import climb, knee
from bench.load.report import Outcome, Report
from bench.table import Row, format_table

_MAX_SECONDS = 7200.0
_SENTENCES = Path(__file__).parent.parent / "sentences.txt"
_NUM_PREPARED = 2000
"""Requests of a closed loop, which are used again and again."""
_RAMP_CONCURRENCY = 256


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if not (options.remote or _is_loopback(options.address)):
        parser.error(f"{options.address} is another machine; --remote if its owner agreed")
    if not 0 < options.seconds <= _MAX_SECONDS:
        parser.error(f"--seconds is {options.seconds:g}, must be at most {_MAX_SECONDS:g}")
    lines = options.sentences.read_text(encoding="utf-8").splitlines()
    sentences = [""] if options.empty else [line for line in lines if line]
    traffic = Traffic(sentences, options.per_call, options.model or [""], options.mixed)
    try:
        print(_answer(options, traffic))
    except (ConnectionError, ValueError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.load",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("address", help="host:port of a server")
    parser.add_argument("--rate", type=float, help="calls per second, at random times")
    parser.add_argument("--concurrency", type=int, help="callers that wait for their answers")
    parser.add_argument("--seconds", type=float, default=10.0, help="default %(default)s")
    parser.add_argument("--per-call", type=int, default=1, help="sentences in a call")
    parser.add_argument("--mixed", action="store_true", help="sizes, beams and attention at random")
    parser.add_argument("--empty", action="store_true", help="texts with nothing to translate")
    parser.add_argument("--model", action="append", help="may be given several times")
    parser.add_argument("--sentences", type=Path, default=_SENTENCES, help="one a line")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true", help="the report on one line")
    parser.add_argument("--remote", action="store_true", help="allow more than this machine")
    return parser


def _is_loopback(address: str) -> bool:
    host = address.rpartition(":")[0].strip("[]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _answer(options: argparse.Namespace, traffic: Traffic) -> str:
    if options.rate is None and options.concurrency is None:
        return _ramp(options, traffic)
    report = _measure(options, traffic)
    return json.dumps(asdict(report)) if options.json else format_table([_row("", report)])


def _measure(options: argparse.Namespace, traffic: Traffic) -> Report:
    if options.rate is not None:
        return _open(options, traffic, options.rate)
    calls = traffic.calls([0.0] * _NUM_PREPARED, options.seed)
    return _reported(
        lambda: closed_loop(options.address, calls, options.concurrency, options.seconds),
        options.seconds,
    )


def _open(options: argparse.Namespace, traffic: Traffic, rate: float) -> Report:
    dues = poisson_arrivals(rate, options.seconds, options.seed)
    calls = traffic.calls(dues, options.seed)
    return _reported(lambda: open_loop(options.address, calls), options.seconds)


def _reported(load: Callable[[], list[Outcome]], seconds: float) -> Report:
    started = time.process_time()
    outcomes = load()
    return Report.of(outcomes, seconds, time.process_time() - started)


def _ramp(options: argparse.Namespace, traffic: Traffic) -> str:
    options.concurrency = max(1, _RAMP_CONCURRENCY // options.per_call)
    saturated = _measure(options, traffic)
    if not saturated.goodput:
        raise ValueError(f"the server answered nothing in time; it said {dict(saturated.codes)}")
    rows, reports = [_row("saturated", saturated)], []

    def measure(sentences_per_second: float) -> Report:
        return _open(options, traffic, sentences_per_second / options.per_call)

    for fraction, report in climb(saturated.goodput, measure):
        reports.append(report)
        rows.append(_row(f"{fraction:.0%} of it", report))
    rows.append(_row("the knee", knee(reports)))
    return format_table(rows)


def _row(case: str, report: Report) -> Row:
    return Row("load", case, "server", report.columns())


if __name__ == "__main__":
    sys.exit(main())
