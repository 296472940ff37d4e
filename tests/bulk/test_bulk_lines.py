"""The lines of files: all of them, in order, whatever compresses the file and however it is cut."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.client.bulk.lines import MAX_LINE_BYTES, Line, LineReader
from service.client.bulk.shard import Shard
from service.errors import InvalidArgument
from tests.bulk.files import SUFFIXES, put

WHOLE = Shard()
# Line ends of all kinds, and what others take for one.
TEXTS = st.lists(st.sampled_from([b"a man", b"\n", b"\r\n", b"\r", b"\x0b", "\u2028é".encode()]))
any_text = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])


def lines_of(path: Path, shard: Shard = WHOLE) -> list[Line]:
    with LineReader(path, shard) as reader:
        return list(reader)


@any_text
@given(TEXTS)
def test_lines_with_their_ends_are_the_file(tmp_path: Path, parts: list[bytes]) -> None:
    text = b"".join(parts)
    lines = lines_of(put(tmp_path / "in", text))
    assert b"".join((line.data or b"") + line.end for line in lines) == text
    assert [line.number for line in lines] == [*range(1, len(lines) + 1)]
    assert {line.end for line in lines[:-1]} <= {b"\n", b"\r\n"}


@pytest.mark.parametrize("suffix", SUFFIXES)
@any_text
@given(parts=TEXTS, count=st.integers(1, 7))
def test_shares_one_after_another_are_the_whole(
    tmp_path: Path, suffix: str, parts: list[bytes], count: int
) -> None:
    path = put(tmp_path / f"in{suffix}", b"".join(parts))
    shares = [lines_of(path, Shard(index, count)) for index in range(count)]
    assert sum(shares, []) == lines_of(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
@any_text
@given(parts=TEXTS, count=st.integers(1, 3))
def test_a_reader_goes_on_from_any_place(
    tmp_path: Path, suffix: str, parts: list[bytes], count: int
) -> None:
    path = put(tmp_path / f"in{suffix}", b"".join(parts))
    for index in range(count):
        lines = lines_of(path, Shard(index, count))
        for read, line in enumerate(lines, start=1):
            with LineReader(path, Shard(index, count)) as reader:
                assert reader.go_on_from(line.after)
                assert list(reader) == lines[read:]


def test_a_change_before_a_place_is_seen_and_one_behind_it_is_not(tmp_path: Path) -> None:
    place = lines_of(put(tmp_path / "in", b"one\ntwo\nthree\n"))[1].after
    for text, is_same in ((b"one\ntwo\nTHREE\n", True), (b"one\ntwO\n", False), (b"one", False)):
        with LineReader(put(tmp_path / "in", text), WHOLE) as reader:
            assert reader.go_on_from(place) == is_same


def test_a_line_that_is_too_long_is_not_kept(tmp_path: Path) -> None:
    path = put(tmp_path / "in.zst", b"one\n" + b"x" * (2 * MAX_LINE_BYTES + 9) + b"\nthree\n")
    first, second, third = lines_of(path)
    assert (first.data, second.data, third.data) == (b"one", None, b"three")
    assert (second.end, third.number) == (b"\n", 3)


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
@pytest.mark.parametrize("shard", [WHOLE, Shard(0, 2)])
@pytest.mark.parametrize("fault", ["cut", "other"])
def test_a_damaged_file_is_named(suffix: str, shard: Shard, fault: str, tmp_path: Path) -> None:
    path = put(tmp_path / f"in{suffix}", b"A man walks.\n" * 50)
    path.write_bytes(path.read_bytes()[:-7] if fault == "cut" else b"A man walks.\n")
    with pytest.raises(InvalidArgument, match=f"in{suffix} is damaged: "):
        lines_of(path, shard)


@pytest.mark.parametrize("text", ["", "1", "1/", "/2", "2/2", "-1/2", "0/0", "1/2/3", "a/b"])
def test_a_share_that_there_is_not_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        Shard.parse(text)


def test_names_of_shares_in_order_are_shares_in_order() -> None:
    names = [Shard(index, 12).named("corpus.en.txt.gz") for index in range(12)]
    assert names[2] == "corpus.en.02-of-12.txt.gz" and names == sorted(names)
    assert WHOLE.named("corpus.txt") == "corpus.txt"
