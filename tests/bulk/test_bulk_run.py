"""One file from beginning to end, stopped anywhere on the way, gone on with or refused."""

import json
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from service.client.bulk.formats import JsonFormat, TsvFormat
from service.client.bulk.journal import journal_of
from service.client.bulk.output import part_of
from service.client.bulk.plan import Plan
from service.client.bulk.run import CHECKPOINT_LINES, run
from service.client.bulk.shard import Shard
from service.client.bulk.windows import MAX_WINDOW_LINES
from service.errors import ConfigError, InvalidArgument
from service.pb import translation_pb2 as pb
from tests.bulk.files import SUFFIXES, put, text_of
from tests.bulk.plans import LINES, NUM_LINES, TEXT, Stopping, plan_of, stopped
from tests.bulk.shouting import REFUSED, Shouting
from tests.bulk.told import Told


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_run_that_is_stopped_anywhere_goes_on_to_the_same_bytes(
    suffix: str, tmp_path: Path
) -> None:
    (tmp_path / "whole").mkdir()
    whole = plan_of(tmp_path / "whole", suffix=suffix)
    expected, told = run(whole, Shouting(), Told()), Told()
    assert text_of(whole.output) == TEXT.upper()
    for num_requests in range(1, 26, 4):
        (folder := tmp_path / f"{num_requests}").mkdir()
        plan = plan_of(folder, suffix=suffix)
        stopped(plan, num_requests)
        assert not plan.output.exists()
        found = run(plan, Shouting(), told)
        assert plan.output.read_bytes() == whole.output.read_bytes()
        assert replace(found, seconds=0.0) == replace(expected, seconds=0.0)
        assert not part_of(plan.output).exists()
    assert f"{plan.output}: going on after line {3 * CHECKPOINT_LINES}" in told.lines


def test_a_run_that_is_stopped_again_and_again_gets_to_the_end(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, suffix=".gz")
    for _ in range(3):
        stopped(plan, CHECKPOINT_LINES // MAX_WINDOW_LINES + 1)
    client = Shouting()
    run(plan, client, Told())
    assert text_of(plan.output) == TEXT.upper()
    assert sum(map(len, client.requests)) == NUM_LINES - 3 * CHECKPOINT_LINES


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    plan, client = plan_of(tmp_path), Shouting()
    first = run(plan, client, Told())
    client.requests.clear()
    assert run(plan, client, Told()) == first and not client.requests


def test_a_kill_between_the_end_and_the_name_is_made_good(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    run(plan, Shouting(), Told())
    plan.output.rename(part_of(plan.output))
    run(plan, Shouting(Stopping(0)), Told())
    assert text_of(plan.output) == TEXT.upper()


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_outputs_of_shares_one_after_another_are_that_of_the_whole(
    suffix: str, count: int, tmp_path: Path
) -> None:
    joined, numbers = put(tmp_path / f"joined{suffix}", b""), list[int]()
    with joined.open("wb") as file:
        for index in range(count):
            shard = Shard(index, count)
            output = tmp_path / shard.named(f"out.txt{suffix}")
            text = TEXT.replace(b"line 7 ", b"\xff").replace(b"line 1600 ", b"\xff")
            plan = plan_of(tmp_path, text, suffix, shard=shard, output=output)
            numbers += run(plan, Shouting(), Told()).failed_lines
            file.write(output.read_bytes())
    expected = [b"\n" if number in (7, 1600) else line for number, line in enumerate(LINES)]
    assert text_of(joined) == b"".join(expected).upper()
    assert numbers == [8, 1601]


CHANGES: dict[str, Callable[[Plan], Plan]] = {
    "format": lambda plan: replace(plan, format=JsonFormat()),
    "column": lambda plan: replace(plan, format=TsvFormat(2)),
    "options": lambda plan: replace(
        plan, request=pb.TranslateRequest(options=pb.DecodingOptions(beam_size=7))
    ),
    "include_attention": lambda plan: replace(
        plan, request=pb.TranslateRequest(include_attention=True)
    ),
    "model": lambda plan: replace(plan, request=pb.TranslateRequest(model="other")),
    "shard": lambda plan: replace(plan, shard=Shard(0, 2)),
    "input size": lambda plan: plan_of(plan.source.parent, TEXT + b"more\n"),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("is_done", [True, False])
def test_another_run_does_not_go_on_with_an_output(
    name: str, is_done: bool, tmp_path: Path
) -> None:
    plan, client = plan_of(tmp_path), Shouting()
    if is_done:
        run(plan, client, Told())
    else:
        stopped(plan, 20)
    before = {path: path.read_bytes() for path in tmp_path.glob("out*")}
    with pytest.raises(ConfigError, match=f"was begun with other .*{name}"):
        run(CHANGES[name](plan), client, Told())
    assert {path: path.read_bytes() for path in tmp_path.glob("out*")} == before


def test_an_input_that_changed_where_it_was_translated_is_refused(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    stopped(plan, 20)
    put(plan.source, TEXT.replace(b"line 3 ", b"LINE 3 "))
    with pytest.raises(ConfigError, match="its first .* lines have changed"):
        run(plan, Shouting(), Told())


@pytest.mark.parametrize("text", ["", "{}", "3", '{"journal": 2}', '{"journal": 1, "place": 3}'])
def test_what_is_no_journal_is_refused(text: str, tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    stopped(plan, 20)
    journal_of(plan.output).write_text(text)
    with pytest.raises(ConfigError, match="is no journal of this version"):
        run(plan, Shouting(), Told())


def test_an_output_that_lost_its_end_is_refused(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    stopped(plan, 20)
    part_of(plan.output).write_bytes(b"short")
    with pytest.raises(ConfigError, match="out.txt.part has less than"):
        run(plan, Shouting(), Told())


def test_a_run_stays_with_the_version_that_it_began_with(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    stopped(plan, 20)
    with pytest.raises(ConfigError, match="shouting 1 is no longer served, 2 is"):
        run(plan, Shouting(version="2"), Told())
    run(plan, Shouting(version="1"), Told())
    assert text_of(plan.output) == TEXT.upper()


def test_bad_lines_are_told_and_counted_and_cost_the_others_nothing(tmp_path: Path) -> None:
    lines = [*LINES]
    lines[9], lines[700] = b"\xff\xfe\n", REFUSED.encode() + b"\r\n"
    plan, told = plan_of(tmp_path, b"".join(lines)), Told()
    totals = run(plan, Shouting(), told)
    expected = [line.upper() for line in lines]
    expected[9], expected[700] = b"\n", b"\r\n"
    assert text_of(plan.output) == b"".join(expected)
    assert (totals.segments, totals.failed, totals.failed_lines) == (NUM_LINES, 2, [10, 701])
    assert told.lines == [
        f"{plan.source}: line 10: not UTF-8; convert it first, with iconv",
        f"{plan.source}: line 701: is too much; say something else",
    ]
    assert "  failed          2: lines 10, 701" in totals.report()


def test_a_strict_run_stops_at_the_first_bad_line(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, TEXT.replace(b"line 600 ", b"\xff"), strict=True)
    with pytest.raises(InvalidArgument, match="line 601: not UTF-8"):
        run(plan, Shouting(), Told())
    assert not plan.output.exists()
    assert run(replace(plan, strict=False), Shouting(), Told()).failed_lines == [601]


def test_the_report_names_some_lines_and_counts_all(tmp_path: Path) -> None:
    totals = run(plan_of(tmp_path, b"\xff\n" * 150), Shouting(), Told())
    [failed] = [line for line in totals.report() if line.startswith("  failed")]
    assert failed.startswith("  failed          150: lines 1, 2, ")
    assert failed.endswith(", 100 and 50 more")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("text", [b"", b"\n", b"one", b"one\r\ntwo\n\n"])
def test_a_small_file_keeps_its_ends_of_lines(suffix: str, text: bytes, tmp_path: Path) -> None:
    plan = plan_of(tmp_path, text, suffix)
    run(plan, Shouting(), Told())
    assert text_of(plan.output) == text.upper()


def test_the_fields_of_a_line_that_failed_are_kept(tmp_path: Path) -> None:
    lines = ['{"id": 1, "text": "one"}', f'{{"id": 2, "text": "{REFUSED}"}}', "three", '{"id": 4}']
    plan = plan_of(tmp_path, "\n".join(lines).encode(), format=JsonFormat())
    run(plan, Shouting(), Told())
    assert [*map(json.loads, text_of(plan.output).splitlines())] == [
        {"id": 1, "text": "one", "translation": "ONE"},
        {"id": 2, "text": REFUSED, "error": "is too much; say something else"},
        {"error": "not JSON"},
        {"id": 4, "error": "no text in the field 'text'"},
    ]


def test_a_server_that_takes_few_texts_at_once_is_sent_few(tmp_path: Path) -> None:
    plan, client = plan_of(tmp_path), Shouting(max_contents=5)
    run(plan, client, Told())
    assert max(map(len, client.requests)) == 5
    assert text_of(plan.output) == TEXT.upper()


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("shard", [Shard(), Shard(1, 3)])
def test_progress_goes_from_nothing_to_all_of_it(suffix: str, shard: Shard, tmp_path: Path) -> None:
    told = Told()
    run(plan_of(tmp_path, suffix=suffix, shard=shard), Shouting(), told)
    done = [done for done, _ in told.shown]
    [total] = {total for _, total in told.shown}
    assert done == sorted(done) and 0 <= done[0] and done[-1] == total


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    peaks = list[int]()
    for times in (1, 1, 4):  # the first time, what is made once is made
        for path in tmp_path.iterdir():
            path.unlink()
        plan = plan_of(tmp_path, TEXT * times, ".gz")
        tracemalloc.start()
        try:
            run(plan, _Deaf(), Told())
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[2] < 1.5 * peaks[1]


class _Deaf(Shouting):
    """Keeps nothing of what it was asked."""

    def translate(self, request: pb.TranslateRequest) -> pb.TranslateResponse:
        self.requests.clear()
        return super().translate(request)
