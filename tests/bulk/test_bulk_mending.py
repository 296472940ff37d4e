"""Lines that failed for what may pass: the same command tries them again, and leaves the others."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from service.client.bulk import run as running
from service.client.bulk.formats import JsonFormat
from service.client.bulk.journal import journal_of
from service.client.bulk.output import part_of
from service.client.bulk.run import run
from service.errors import ConfigError, DeadlineExceeded, Unavailable, WorkerFailed
from tests.bulk.files import SUFFIXES, put, text_of
from tests.bulk.plans import ONCE, TEXT, Stopping, plan_of, stopped
from tests.bulk.shouting import REFUSED, Shouting
from tests.bulk.told import Told

SLOW = ("line 3 ", "line 700 ", "line 1635 ")  # the last of them is that of the file


def slowly(texts: Sequence[str]) -> None:
    if any(text.startswith(SLOW) for text in texts):
        raise DeadlineExceeded("slow")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("end", [b"\n", b""])
def test_the_same_command_mends_them_to_the_bytes_of_a_run_without(
    suffix: str, end: bytes, tmp_path: Path
) -> None:
    text = TEXT.removesuffix(b"\n") + end
    (tmp_path / "whole").mkdir()
    whole = plan_of(tmp_path / "whole", text, suffix)
    expected = run(whole, Shouting(), Told())
    plan = plan_of(tmp_path, text, suffix)
    first = run(plan, Shouting(slowly), Told())
    assert (first.failed, first.failed_lines, first.passing) == (3, [4, 701, 1636], [4, 701, 1636])
    client = Shouting()
    assert replace(run(plan, client, Told()), seconds=0.0) == replace(expected, seconds=0.0)
    assert sum(map(len, client.requests)) == 3
    assert plan.output.read_bytes() == whole.output.read_bytes()
    assert not part_of(plan.output).exists()


def test_a_run_that_goes_on_mends_what_failed_before_it(tmp_path: Path) -> None:
    def slowly_and_then_away(texts: Sequence[str]) -> None:
        away(texts)
        slowly(texts)

    away, plan = Stopping(40), plan_of(tmp_path)
    with pytest.raises(Unavailable):
        run(plan, Shouting(slowly_and_then_away), Told(), ONCE)
    assert run(plan, Shouting(), Told()).failed == 0
    assert text_of(plan.output) == TEXT.upper()


def test_what_fails_again_is_tried_again_and_what_is_refused_is_not(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, TEXT.replace(b"line 9 ", REFUSED.encode()))
    run(plan, Shouting(slowly), Told())
    before, client, told = plan.output.read_bytes(), Shouting(slowly), Told()
    totals = run(plan, client, told)
    assert totals.failed_lines == [4, 10, 701, 1636]
    assert [line for line in totals.report() if "another time" in line]
    assert sum(map(len, client.requests)) == 3 and plan.output.read_bytes() == before
    assert f"{plan.source}: line 4: slow" in told.lines
    totals = run(plan, Shouting(), Told())
    assert (totals.failed, totals.failed_lines, totals.passing) == (1, [10], [])


def test_a_mending_that_is_stopped_leaves_the_output_as_it_was(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, suffix=".gz")
    run(plan, Shouting(slowly), Told())
    before = plan.output.read_bytes(), journal_of(plan.output).read_bytes()
    stopped(plan, 1)
    assert (plan.output.read_bytes(), journal_of(plan.output).read_bytes()) == before
    assert run(plan, Shouting(), Told()).failed == 0
    assert text_of(plan.output) == TEXT.upper()


@pytest.mark.parametrize("which", ["source", "output"])
def test_files_that_changed_since_are_not_mended(which: str, tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    run(plan, Shouting(slowly), Told())
    if which == "source":
        put(plan.source, TEXT.replace(b"line 9 ", b"LINE 9 "))
    else:
        plan.output.write_bytes(plan.output.read_bytes() + b"more\n")
    before = plan.output.read_bytes()
    with pytest.raises(ConfigError, match="has changed since it was done"):
        run(plan, Shouting(), Told())
    assert plan.output.read_bytes() == before


def test_the_field_error_of_a_mended_object_goes(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, b'{"text": "line 3 "}\n', format=JsonFormat())
    run(plan, Shouting(slowly), Told())
    assert json.loads(text_of(plan.output)) == {"text": "line 3 ", "error": "slow"}
    run(plan, Shouting(), Told())
    assert json.loads(text_of(plan.output)) == {"text": "line 3 ", "translation": "LINE 3 "}


def test_a_run_stops_where_nearly_everything_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hurt(texts: Sequence[str]) -> None:
        raise WorkerFailed("hurt")

    monkeypatch.setattr(running, "MAX_PASSING", 20)
    plan = plan_of(tmp_path)
    with pytest.raises(Unavailable, match="line 21: hurt; as 20 lines before it"):
        run(plan, Shouting(hurt), Told())
    assert run(plan, Shouting(), Told()).failed == 0
    assert text_of(plan.output) == TEXT.upper()


def test_capital_suffixes_are_suffixes(tmp_path: Path) -> None:
    for suffix in (".GZ", ".Zst"):
        plan = plan_of(tmp_path, suffix=suffix)
        run(plan, Shouting(), Told())
        assert text_of(plan.output) == TEXT.upper()
