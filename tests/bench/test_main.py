"""Every workload from end to end, too small to measure anything."""

import json
from pathlib import Path

import pytest

from bench.__main__ import WORKLOADS, main
from bench.corpus import OWN_SENTENCES


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_workload_gives_rows_for_the_table_and_the_file(
    models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = [f"--models={models}", f"--sentences={OWN_SENTENCES}", f"--results={tmp_path}"]
    assert main([*WORKLOADS, "--quick", "--name=all", *flags]) == 0

    rows = json.loads((tmp_path / "all.json").read_text())["rows"]
    printed = capsys.readouterr().out
    for row in rows:
        assert f"\n{row['case']} " in printed
    tables = {row["workload"] for row in rows}
    assert "long texts" in tables and len(tables) == len(WORKLOADS) + 1  # `text` has two
    assert (tmp_path / "all-soak.csv").read_text().startswith("seconds,resident_mib,")


def test_a_workload_without_its_model_says_so_and_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = [f"--models={tmp_path}", f"--sentences={OWN_SENTENCES}", f"--results={tmp_path}"]
    assert main(["bahdanau", *flags]) == 1
    assert "has no bahdanau" in capsys.readouterr().err
