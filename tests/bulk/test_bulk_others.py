"""What others have written, before a run or beside it, is never written over."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from service.client.bulk.run import run
from service.errors import ConfigError
from service.pb import translation_pb2 as pb
from tests.bulk.files import put, text_of
from tests.bulk.plans import NUM_LINES, TEXT, Stopping, plan_of, stopped
from tests.bulk.shouting import Shouting
from tests.bulk.told import Told


def test_a_file_of_somebody_else_is_not_written_over(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    plan.output.write_text("mine")
    with pytest.raises(ConfigError, match="is there already"):
        run(plan, Shouting(), Told())
    assert plan.output.read_text() == "mine"


def test_what_was_finished_by_another_process_in_the_meantime_stays(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    stopped(plan, 20)

    class Slow(Shouting):
        def list_models(self) -> pb.ListModelsResponse:
            run(plan, Shouting(), Told())  # the other one, after this one has read the journal
            return super().list_models()

    with pytest.raises(ConfigError, match="another process has written it in the meantime"):
        run(plan, Slow(), Told())
    assert run(plan, Shouting(Stopping(0)), Told()).segments == NUM_LINES
    assert text_of(plan.output) == TEXT.upper()


@pytest.mark.parametrize("name", ["out.txt.part", "out.txt.journal"])
def test_a_file_that_has_the_name_of_a_part_or_a_journal_is_not_written_over(
    name: str, tmp_path: Path
) -> None:
    plan = replace(plan_of(tmp_path), source=put(tmp_path / name, TEXT))
    with pytest.raises(ConfigError, match="is there already|is no journal"):
        run(plan, Shouting(), Told())
    assert plan.source.read_bytes() == TEXT


def test_a_file_that_somebody_has_put_there_in_the_meantime_is_not_written_over(
    tmp_path: Path,
) -> None:
    plan = plan_of(tmp_path)

    def put_mine(texts: Sequence[str]) -> None:
        plan.output.write_text("mine")

    for _ in range(2):
        with pytest.raises(ConfigError, match="is there already"):
            run(plan, Shouting(put_mine), Told())
    assert plan.output.read_text() == "mine"
