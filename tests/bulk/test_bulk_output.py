"""Outputs: whole members, which other tools read, and which a cut leaves as they are."""

import gzip
from pathlib import Path

import pytest

from service.client.bulk.output import Output, part_of, publish
from service.errors import ConfigError
from tests.bulk.files import SUFFIXES, text_of

LINES = [f"line {number} of a text\n".encode() for number in range(30)]
suffixes = pytest.mark.parametrize("suffix", SUFFIXES)


def write(path: Path, lines: list[bytes], size: int = 0) -> list[int]:
    """Writes lines and returns the size at a checkpoint after each third one."""
    with Output(path) as output:
        output.begin(size)
        sizes = list[int]()
        for number, line in enumerate(lines, start=1):
            output.write(line)
            if number % 3 == 0:
                sizes.append(output.checkpoint())
        output.finish()
    return sizes


@suffixes
def test_what_was_written_is_read_by_others(suffix: str, tmp_path: Path) -> None:
    write(tmp_path / f"out{suffix}", LINES)
    publish(tmp_path / f"out{suffix}")
    assert text_of(tmp_path / f"out{suffix}") == b"".join(LINES)
    assert [*tmp_path.iterdir()] == [tmp_path / f"out{suffix}"]


@suffixes
@pytest.mark.parametrize("torn", [b"", b"\x1f", b"half a member"])
def test_an_output_that_is_cut_at_a_checkpoint_goes_on_to_the_same_bytes(
    suffix: str, torn: bytes, tmp_path: Path
) -> None:
    path = tmp_path / f"out{suffix}"
    sizes = write(path, LINES)
    whole = part_of(path).read_bytes()
    for done, size in enumerate([0, *sizes]):
        part_of(path).write_bytes(whole[:size] + torn)
        write(path, LINES[3 * done :], size)
        assert part_of(path).read_bytes() == whole


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_an_output_of_no_line_is_a_file_that_others_read(suffix: str, tmp_path: Path) -> None:
    write(tmp_path / f"out{suffix}", [])
    publish(tmp_path / f"out{suffix}")
    assert text_of(tmp_path / f"out{suffix}") == b""


def test_a_member_holds_no_time(tmp_path: Path) -> None:
    write(tmp_path / "out.gz", LINES)
    with gzip.open(part_of(tmp_path / "out.gz")) as file:
        file.read(1)
        assert file.mtime == 0


def test_only_one_process_writes_an_output(tmp_path: Path) -> None:
    with Output(tmp_path / "out") as output:
        output.write(b"line\n")
        with pytest.raises(ConfigError, match="another process is writing it"):
            Output(tmp_path / "out")
        assert output.checkpoint() == 5
    assert part_of(tmp_path / "out").read_bytes() == b"line\n"
