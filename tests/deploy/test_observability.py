"""The alerts fire when they should, the dashboard's queries have data, and each has its page."""

import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from service.metrics import Metrics
from tests.running_server import RunningServer, eventually
from tests.scraped_server import OBSERVABILITY, Prometheus, panels, scraped_server

ROOT = Path(__file__).parents[2]
MANUAL = ROOT / "docs" / "operations.md"
needs_prometheus = pytest.mark.skipif(
    not (shutil.which("prometheus") and shutil.which("promtool")),
    reason="prometheus and promtool are not installed; Debian's package prometheus has both",
)
# Names of the metrics and of the recorded series, as they stand in expressions.
_SERIES = re.compile(r"\b(?:up|(?:nmt|grpc_server|process)_\w+|job\w*:[\w:]+)(?=[{\[) ]|$)")


def load(name: str) -> Any:
    return yaml.safe_load((OBSERVABILITY / name).read_text())


def rules(name: str) -> list[dict[str, Any]]:
    return [rule for group in load(name)["groups"] for rule in group["rules"]]


ALERTS = {rule["alert"]: rule for rule in rules("alerts.yaml")}
RECORDED = {rule["record"]: rule["expr"] for rule in rules("recording.yaml")}
TESTS = load("alerts.test.yaml")["tests"]
[QUIET] = [test for test in TESTS if test["name"].startswith("quiet")]


def promtool(*arguments: str, input: str = "") -> "subprocess.CompletedProcess[str]":
    command = ["promtool", *arguments]
    return subprocess.run(command, cwd=OBSERVABILITY, input=input, capture_output=True, text=True)


def series_of(expression: str) -> set[str]:
    """The metrics that an expression is made of, in the end."""
    names = set(_SERIES.findall(expression))
    recorded = names & RECORDED.keys()
    return (names - recorded).union(*(series_of(RECORDED[name]) for name in recorded))


@pytest.fixture(scope="module")
def scraped(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[RunningServer, Prometheus]]:
    folder: Path = tmp_path_factory.mktemp("scraped")
    with scraped_server(folder) as both:
        yield both


@needs_prometheus
def test_the_rules_pass_their_own_tests() -> None:
    assert promtool("check", "rules", "recording.yaml", "alerts.yaml").returncode == 0
    result = promtool("test", "rules", "alerts.test.yaml")
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_is_made_to_fire_and_to_stay_quiet(alert: str) -> None:
    checks = [check for test in TESTS for check in test["alert_rule_test"]]
    fires = [bool(check.get("exp_alerts")) for check in checks if check["alertname"] == alert]
    assert {True, False} == set(fires)


@pytest.mark.parametrize("alert", ALERTS)
def test_the_quiet_day_has_all_that_an_alert_looks_at(alert: str) -> None:
    given = {series["series"].partition("{")[0] for series in QUIET["input_series"]}
    assert series_of(ALERTS[alert]["expr"]) <= given


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_says_how_bad_it_is_what_it_is_and_where_to_read_on(alert: str) -> None:
    rule = ALERTS[alert]
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert rule["annotations"]["summary"]
    assert rule["annotations"]["runbook_url"] == f"docs/operations.md#{alert.lower()}"
    assert f"### {alert}\n" in MANUAL.read_text()


def test_every_metric_is_in_the_manual() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry)
    metrics.model("m")
    metrics.rpc("unary", "service", "method")
    metrics.watch_certificate(lambda: 0.0)
    manual = MANUAL.read_text()
    for family in registry.collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        assert f"`{name}`" in manual, name


def test_the_panels_have_ids_of_their_own_and_do_not_overlap() -> None:
    dashboard = json.loads((OBSERVABILITY / "dashboard.json").read_text())
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(ids) == len(set(ids))
    places = [panel["gridPos"] for panel in dashboard["panels"]]
    for one, other in itertools.combinations(places, 2):
        apart = (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )
        assert apart, (one, other)


@needs_prometheus
def test_promtool_has_no_complaint_about_the_metrics_of_a_loaded_server(
    scraped: tuple[RunningServer, Prometheus],
) -> None:
    server, _ = scraped
    eventually(lambda: server.sample("nmt_finished_sentences_total"))
    result = promtool("check", "metrics", input=server.metrics())
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


@needs_prometheus
@pytest.mark.parametrize("query", sorted({panel.query for panel in panels()}))
def test_a_query_of_the_dashboard_has_data(
    query: str, scraped: tuple[RunningServer, Prometheus]
) -> None:
    _, prometheus = scraped
    assert eventually(lambda: prometheus.query(query))


@needs_prometheus
@pytest.mark.parametrize("record", RECORDED)
def test_a_recorded_series_has_data(record: str, scraped: tuple[RunningServer, Prometheus]) -> None:
    _, prometheus = scraped
    assert eventually(lambda: prometheus.query(record))


@needs_prometheus
@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_is_evaluated_on_series_that_a_server_has(
    alert: str, scraped: tuple[RunningServer, Prometheus]
) -> None:
    _, prometheus = scraped
    prometheus.query(ALERTS[alert]["expr"])  # which raises if it is no expression
    series = series_of(ALERTS[alert]["expr"])
    assert series
    for name in series:
        assert eventually(partial(prometheus.query, name))
