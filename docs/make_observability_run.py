"""Writes docs/observability-run.md anew: `python -m docs.make_observability_run`.

Needs Debian's package prometheus. A Prometheus scrapes a server that is under load, and the page
shows what each query of the dashboard and each alert then was.
"""

import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.running_server import eventually
from tests.scraped_server import Panel, Prometheus, panels, scraped_server

PAGE = Path(__file__).parent / "observability-run.md"
_INTRODUCTION = """# What the dashboard shows

Written by `python -m docs.make_observability_run`: a Prometheus scraped a server of two tiny models
while three callers sent it translations: some refused by a full queue, some without the time they
need, some to a model that isn't there. A broken bundle was put beside the models, hence
NmtReloadFailed. The numbers say nothing about speed; that every row has some says that the
dashboard and the rules fit the server.
"""
# The page waits for these, so that it shows more than zeros.
_SIGNS_OF_LOAD = (
    'job_method_code:grpc_server_handled:rate5m{grpc_code="DeadlineExceeded"} > 0',
    'job_method_code:grpc_server_handled:rate5m{grpc_code="ResourceExhausted"} > 0',
    'increase(nmt_reloads_total{outcome="failed"}[5m]) > 0',
    "job_model:nmt_occupancy:ratio > 0",
)


def page(prometheus: Prometheus) -> Iterator[str]:
    """The lines of the page."""
    yield _INTRODUCTION
    yield "| panel | query | values |\n|---|---|---|"
    for panel in panels():
        yield f"| {panel.title} | `{_cell(panel.query)}` | {_values(panel, prometheus)} |"
    yield "\n| rule | state |\n|---|---|"
    for group in prometheus.get("rules")["groups"]:
        for rule in group["rules"]:
            yield f"| `{rule['name']}` | {rule.get('state', 'recorded')}, {rule['health']} |"


def _values(panel: Panel, prometheus: Prometheus) -> str:
    values = prometheus.query(panel.query).items()
    return _cell(
        "; ".join(sorted(f"{_name(panel, key)} {value:.4g}".strip() for key, value in values))
    )


def _name(panel: Panel, labels: str) -> str:
    """A series' line in the legend; in a table its labels are columns."""
    named = json.loads(labels)
    legend = re.sub(r"{{(\w+)}}", lambda match: str(named[match[1]]), panel.legend)
    return legend or ", ".join(named.values())


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


def _write_page() -> None:
    with TemporaryDirectory() as folder, scraped_server(Path(folder)) as (_, prometheus):
        for query in (*_SIGNS_OF_LOAD, *(panel.query for panel in panels())):
            eventually(partial(prometheus.query, query))
        PAGE.write_text("\n".join(page(prometheus)) + "\n")


if __name__ == "__main__":
    _write_page()
