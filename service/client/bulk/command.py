"""`translate FILE… --output PATH`: files to files, with progress and a report for each.

Exit codes: 0 every line was translated, 1 some weren't or it was stopped, 2 it was asked for
something wrong. After 1, and after a kill, the same command goes on where it was.
"""

import argparse
from collections.abc import Iterator
from contextlib import closing

from service.client.bulk.calls import TIMEOUT_SECONDS, TranslationClient
from service.client.bulk.plan import Plan, plans_from
from service.client.bulk.progress import progress_of
from service.client.bulk.run import run
from service.client.bulk.totals import Totals
from service.client.command import client_of, request_of


def translate_files(options: argparse.Namespace) -> int:
    """Runs the command with its parsed arguments; returns the exit code.

    Raises ConfigError, InvalidArgument for a line if it is strict, OSError, and what clients raise.
    """
    plans = plans_from(options, request_of([], options))
    with client_of(options, TIMEOUT_SECONDS) as client:
        return int(any([totals.failed for totals in _totals(plans, client)]))


def _totals(plans: list[Plan], client: TranslationClient) -> Iterator[Totals]:
    """Those of each file, printed when it is done."""
    for plan in plans:
        with closing(progress_of(plan.source.name)) as progress:
            totals = run(plan, client, progress)
        print(plan.output, *totals.report(), sep="\n", flush=True)
        yield totals
