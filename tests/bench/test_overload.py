"""Comparing an overload with the peak: what the generator takes is told apart from the server's."""

from dataclasses import replace

import pytest

from bench.load import Outcome, Report
from bench.workloads.overload import Measured
from service.engine.cores import usable_cores

OUTCOMES = [Outcome(0.0, 0.0, 1.0, 64, "OK"), Outcome(0.0, 0.0, 3.0, 64, "OK")]


def test_processor_time_of_server_and_generator_are_told_apart() -> None:
    idle_generator = Measured(Report.of(OUTCOMES, seconds=2.0), server_seconds=4.0)
    assert idle_generator.per_cpu_second == 128 / 4.0
    assert idle_generator.per_second_left == 64 / (2.0 * usable_cores())
    half = replace(idle_generator.report, cpu_seconds=usable_cores())
    busy_generator = replace(idle_generator, report=half)
    assert busy_generator.per_cpu_second == idle_generator.per_cpu_second
    assert busy_generator.per_second_left == pytest.approx(2 * idle_generator.per_second_left)
    assert busy_generator.columns()["generator CPU %"] == 50 * usable_cores()
