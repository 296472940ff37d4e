"""The autoscaler on queue wait: its metric is what the adapter makes of what servers expose."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.running_server import running_server

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "components" / "autoscale-on-queue-wait"
PLACE = 'namespace="translation"'


@pytest.fixture
def metrics() -> list[dict[str, Any]]:
    """What the autoscaler scales on."""
    found: list[dict[str, Any]] = yaml.safe_load((FOLDER / "autoscaler.yaml").read_text())["spec"][
        "metrics"
    ]
    return found


@pytest.fixture
def rule() -> dict[str, Any]:
    """The adapter's rule."""
    [found] = yaml.safe_load((FOLDER / "adapter-values.yaml").read_text())["rules"]["custom"]
    rule: dict[str, Any] = found
    return rule


def test_the_adapter_serves_the_metric_that_the_autoscaler_asks_for(
    metrics: list[dict[str, Any]], rule: dict[str, Any]
) -> None:
    asked = [metric["pods"]["metric"]["name"] for metric in metrics if metric["type"] == "Pods"]
    assert asked == [rule["name"]["as"]]


def test_a_server_exposes_what_the_rule_reads(rule: dict[str, Any]) -> None:
    with running_server(ROOT / "models") as server:
        exposed = {line.partition("{")[0] for line in server.metrics().splitlines()}
    series = rule["seriesQuery"].partition("{")[0]
    assert {series, series.replace("_count", "_sum")} <= exposed


@pytest.mark.skipif(
    shutil.which("promtool") is None,
    reason="promtool isn't installed; Debian's package prometheus has it",
)
def test_the_rule_is_the_mean_wait_and_nothing_for_an_idle_pod(
    rule: dict[str, Any], tmp_path: Path
) -> None:
    query = rule["metricsQuery"].replace("<<.GroupBy>>", "pod").replace("<<.LabelMatchers>>", PLACE)
    series = {
        f'nmt_queue_seconds_sum{{{PLACE},pod="busy"}}': "0+2x40",
        f'nmt_queue_seconds_count{{{PLACE},pod="busy"}}': "0+8x40",
        f'nmt_queue_seconds_sum{{{PLACE},pod="idle"}}': "5x40",
        f'nmt_queue_seconds_count{{{PLACE},pod="idle"}}': "7x40",
    }
    expected = [
        {"labels": '{pod="busy"}', "value": 2 / 8},
        {"labels": '{pod="idle"}', "value": 0},
    ]
    test = {
        "interval": "15s",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [{"expr": query, "eval_time": "5m", "exp_samples": expected}],
    }
    file = tmp_path / "test.yaml"
    file.write_text(yaml.safe_dump({"evaluation_interval": "15s", "tests": [test]}))
    done = subprocess.run(
        ["promtool", "test", "rules", str(file)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_the_brake_never_scales_up(metrics: list[dict[str, Any]]) -> None:
    [cpu] = [metric["resource"] for metric in metrics if metric["type"] == "Resource"]
    tolerance = 0.1  # of kube-controller-manager, --horizontal-pod-autoscaler-tolerance
    assert 100 / cpu["target"]["averageUtilization"] < 1 + tolerance
