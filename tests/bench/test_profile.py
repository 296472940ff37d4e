"""The step profile: parts that add up, from a bundle of each architecture."""

import json
from pathlib import Path

import pytest

from bench.profile import StepProfile, operator_times, profile, table
from bench.settings import comparable
from service.bundle import read_bundle
from tests.tiny_bundle import random_sources


def kernel(node: str, operator: str, microseconds: int) -> dict[str, object]:
    name, arguments = f"{node}_kernel_time", {"op_name": operator}
    return {"cat": "Node", "name": name, "dur": microseconds, "args": arguments}


def test_an_operator_takes_the_sum_of_its_nodes_medians(tmp_path: Path) -> None:
    events = [
        *(kernel("a", "Add", microseconds) for microseconds in (2, 90, 3)),
        *(kernel("b", "Add", microseconds) for microseconds in (5, 5, 5)),
        kernel("c", "If", 11),
        kernel("listed.d", "TopK", 7),
        {"cat": "Session", "name": "model_run", "dur": 500, "args": {}},
    ]
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(events))
    assert operator_times(path) == {"Add": 8, "TopK": 7, "If": 4}


@pytest.mark.parametrize("architecture", ["transformer", "bahdanau"])
def test_the_parts_of_a_step_add_up_to_it(models: Path, architecture: str) -> None:
    measured = profile(read_bundle(models / architecture), random_sources(3), comparable(2))
    parts = measured.parts()
    assert measured.rows == 6
    assert parts["operators"] == pytest.approx(sum(measured.operators.values()))
    pieces = ("operators", "around operators", "session", "reorder", "search")
    names = [name if name in parts else f"Python: {name}" for name in pieces]
    assert sum(parts[name] for name in names) == pytest.approx(parts["step"])
    assert min(measured.search, measured.session, measured.run) > 0


def test_the_table_has_the_slowest_operator_of_the_largest_batch_first() -> None:
    small = StepProfile(1, 10, 0, 5, 20, {"Add": 12, "TopK": 3})
    large = StepProfile(8, 10, 0, 5, 60, {"Add": 12, "TopK": 33})
    lines = table([small, large], "tiny").splitlines()
    assert [line.split()[0] for line in lines[2:5]] == ["TopK", "Add", "around"]
