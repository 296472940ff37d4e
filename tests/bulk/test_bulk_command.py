"""The command with real models and servers: what `Translate` says, from file to file."""

import gzip
import json
import os
import pty
import signal
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path

import pytest

from service.client.bulk.journal import journal_of
from service.client.local import LocalClient
from service.pb import translation_pb2 as pb
from tests.bulk.files import SUFFIXES, put, text_of
from tests.corpus import ROOT, SENTENCES
from tests.running_server import RunningServer, eventually, run_service, running_server

TEXTS = [f"{sentence} {number}" for number in range(6) for sentence in (*SENTENCES, "", "1 + 1")]
TEXT = "".join(f"{text}\n" for text in TEXTS).encode()
GREEDY = "--beam-size=1"


def translate(*arguments: object) -> "subprocess.CompletedProcess[str]":
    """Runs the command, which must translate every line."""
    done = run_service("translate", *map(str, arguments), GREEDY)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def translations(local: LocalClient) -> list[pb.Translation]:
    """What `Translate` says of each line, asked for one at a time."""
    options = pb.DecodingOptions(beam_size=1)
    requests = (pb.TranslateRequest(contents=[text], options=options) for text in TEXTS)
    return [local.translate(request).translations[0] for request in requests]


@pytest.fixture(scope="module")
def expected(translations: Sequence[pb.Translation]) -> bytes:
    return "".join(f"{translation.translated_text}\n" for translation in translations).encode()


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("other", SUFFIXES)
def test_a_file_becomes_what_its_lines_become_whatever_compresses_it(
    suffix: str, other: str, expected: bytes, server: RunningServer, tmp_path: Path
) -> None:
    source, output = put(tmp_path / f"in.txt{suffix}", TEXT), tmp_path / f"out{other}"
    translate(f"--server={server.address}", source, "--output", output)
    assert text_of(output) == expected


def test_in_this_process_it_is_the_same_with_the_counts_of_the_texts(
    translations: list[pb.Translation], expected: bytes, models: Path, tmp_path: Path
) -> None:
    source = put(tmp_path / "in.txt", TEXT)
    report = translate("--models", models, source, "--output", tmp_path / "out.txt").stdout
    assert text_of(tmp_path / "out.txt") == expected
    passed = sum(translation.passed_through for translation in translations)
    decoded = [s for translation in translations for s in translation.sentences if s.hypotheses]
    counted = {
        "segments": len(TEXTS),
        "source tokens": sum(sentence.source_token_count for sentence in decoded),
        "target tokens": sum(s.hypotheses[0].target_token_count for s in decoded),
        "passed through": passed,
        "failed": 0,
    }
    lines = dict(line.strip().rsplit("  ", 1) for line in report.splitlines()[1:])
    assert {name.strip(): value for name, value in lines.items()}.items() >= {
        name: str(number) for name, number in counted.items()
    }.items()
    assert passed and f"  sentences       {len(decoded)}, " in report


def test_columns_and_fields_become_what_lines_become(
    expected: bytes, server: RunningServer, tmp_path: Path
) -> None:
    lines = expected.decode().splitlines()
    table = "".join(f"{number}\t{text}\n" for number, text in enumerate(TEXTS))
    records = "".join(json.dumps({"text": text, "id": i}) + "\n" for i, text in enumerate(TEXTS))
    tsv, jsonl = tmp_path / "in.tsv", tmp_path / "in.jsonl.gz"
    put(tsv, table.encode())
    put(jsonl, records.encode())
    arguments = (f"--server={server.address}", tsv, jsonl, "--column=2", "--output")
    translate(*arguments, tmp_path / "out")
    rows = [row.split("\t") for row in (tmp_path / "out/in.tsv").read_text().splitlines()]
    assert rows == [[f"{i}", *pair] for i, pair in enumerate(zip(TEXTS, lines, strict=True))]
    found = [*map(json.loads, text_of(tmp_path / "out/in.jsonl.gz").splitlines())]
    assert [record["translation"] for record in found] == lines
    assert [(record["text"], record["id"]) for record in found] == [
        (text, number) for number, text in enumerate(TEXTS)
    ]


def test_what_comes_with_a_translation_comes_as_the_rpc_has_it(
    local: LocalClient, server: RunningServer, tmp_path: Path
) -> None:
    request = pb.TranslateRequest(
        contents=[SENTENCES[5]],
        options=pb.DecodingOptions(beam_size=2, num_hypotheses=2),
        include_attention=True,
        include_alignment=True,
    )
    [translation] = local.translate(request).translations
    put(tmp_path / "in.jsonl", json.dumps({"text": SENTENCES[5]}).encode())
    flags = (f"--server={server.address}", "--n-best=2", "--attention", "--alignment")
    done = run_service(
        "translate", *flags, f"{tmp_path}/in.jsonl", f"--output={tmp_path}/out.jsonl"
    )
    assert done.returncode == 0, done.stderr
    record = json.loads((tmp_path / "out.jsonl").read_bytes())
    [sentence], [expected] = record["sentences"], translation.sentences
    assert sentence["target"] == [expected.target.begin, expected.target.end]
    for found, hypothesis in zip(sentence["hypotheses"], expected.hypotheses, strict=True):
        assert found["text"] == hypothesis.text
        assert found["score"] == pytest.approx(hypothesis.score, abs=1e-5)
        assert found["alignment"] == hypothesis.alignment.pharaoh
        attention, weights = hypothesis.attention, found["attention"]["weights"]
        assert sum(weights, []) == pytest.approx(attention.weights, abs=1e-4)
        assert len(weights) == len(found["attention"]["target_tokens"]) == attention.num_targets
        assert len(found["attention"]["source_tokens"]) == attention.num_sources


def test_shares_are_written_beside_each_other_and_are_the_whole_together(
    expected: bytes, server: RunningServer, tmp_path: Path
) -> None:
    source = put(tmp_path / "in.txt.gz", TEXT)
    for index in range(3):
        arguments = ("--output", f"{tmp_path}/out/", f"--shard={index}/3")
        translate(f"--server={server.address}", source, *arguments)
    outputs = sorted((tmp_path / "out").glob("*.gz"))
    assert gzip.decompress(b"".join(path.read_bytes() for path in outputs)) == expected
    assert outputs[1].name == "in.1-of-3.txt.gz"


def test_bad_lines_of_a_file_do_not_keep_the_next_one_from_being_translated(
    server: RunningServer, tmp_path: Path
) -> None:
    put(tmp_path / "a.txt", b"\xff\n")
    put(tmp_path / "b.txt", b"A man.\n")
    sources = [f"{tmp_path}/a.txt", f"{tmp_path}/b.txt"]
    done = run_service(
        "translate", f"--server={server.address}", *sources, f"--output={tmp_path}/out"
    )
    assert (done.returncode, done.stdout.count("segments        1")) == (1, 2)
    assert (tmp_path / "out/b.txt").read_text().strip()


def test_bad_lines_are_named_and_end_the_command_with_1(
    server: RunningServer, tmp_path: Path
) -> None:
    put(tmp_path / "in.txt", b"A man.\n\xff\xfe\nA dog.\n" + b"young " * 100)
    flags = (f"--server={server.address}", "--refuse-long", f"{tmp_path}/in.txt")
    done = run_service("translate", *flags, f"--output={tmp_path}/out.txt")
    assert done.returncode == 1
    assert f"{tmp_path}/in.txt: line 2: not UTF-8" in done.stderr
    assert f"{tmp_path}/in.txt: line 4: has a sentence of" in done.stderr
    assert done.stdout.endswith("  failed          2: lines 2, 4\n")
    lines = (tmp_path / "out.txt").read_text().split("\n")
    assert [bool(line) for line in lines] == [True, False, True, False]
    again = run_service("translate", *flags, f"--output={tmp_path}/out.txt")
    assert (again.returncode, again.stdout) == (1, done.stdout)
    strict = run_service("translate", *flags, f"--output={tmp_path}/strict.txt", "--strict")
    assert strict.returncode == 1
    assert strict.stderr == f"INVALID_ARGUMENT: {tmp_path}/in.txt: line 2: not UTF-8; convert" + (
        " it first, with iconv\n"
    )


@pytest.mark.parametrize(
    ("arguments", "faults"),
    [
        (["--output=out"], ["--output is given without a FILE"]),
        (["{in}/none", "--output=out"], ["none is no file; with --output, arguments are names"]),
        (
            ["{in}/a.txt", "--output=out", "--shard=4/4"],
            ["--shard '4/4': the shares of 4 are 0 to"],
        ),
        (
            ["{in}/a.txt", "--output=out", "--column=0", "--attention", "--in-flight=0"],
            [
                "--in-flight 0 is less than 1",
                "--column 0 is less than 1",
                "--column needs the format tsv",
                "--attention needs the format jsonl",
            ],
        ),
        (["{in}/a.txt", "{in}/../in/a.txt", "--output=out"], ["two files have the name a.txt"]),
        (["A man.", "--strict"], ["--strict is about files: give --output"]),
    ],
)
def test_a_command_that_contradicts_itself_is_told_every_fault(
    arguments: list[str], faults: list[str], tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    put(tmp_path / "in/a.txt", TEXT)
    done = run_service("translate", *(a.replace("{in}", f"{tmp_path}/in") for a in arguments))
    lines = done.stderr.splitlines()
    assert (done.returncode, len(lines)) == (2, len(faults))
    assert all(fault in line for fault, line in zip(faults, lines, strict=True))


def test_a_server_that_is_full_loses_no_line(expected: bytes, models: Path, tmp_path: Path) -> None:
    source = put(tmp_path / "in.txt", TEXT)
    with running_server(models, "--max-queue-sentences=70") as small:
        translate(f"--server={small.address}", source, "--output", tmp_path / "out.txt")
        refused = small.sample("grpc_server_handled_total", grpc_code="ResourceExhausted")
    assert text_of(tmp_path / "out.txt") == expected and refused


# Many lines that are short work.
LONG = b"".join(b"A man %d.\n" % number for number in range(2600))
SHORT = "--max-length=3"


def started(*arguments: object) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "service", "translate", *map(str, arguments), GREEDY]
    environment = {"OMP_NUM_THREADS": "1", **os.environ}
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def lines_done(output: Path) -> int:
    """How many lines of an output are safe."""
    if not journal_of(output).exists():
        return 0
    lines: int = json.loads(journal_of(output).read_text())["place"]["lines"]
    return lines


def killed(output: Path, *arguments: object) -> None:
    """Starts the command, and kills it once more lines are safe than were."""
    before = lines_done(output)
    process = started(*arguments)
    eventually(lambda: lines_done(output) > before)
    process.send_signal(signal.SIGKILL)
    assert process.wait(30) == -signal.SIGKILL
    assert not output.exists()


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_command_that_is_killed_goes_on_to_the_same_bytes(
    suffix: str, server: RunningServer, tmp_path: Path
) -> None:
    source = put(tmp_path / "in.txt", LONG)
    whole, output = tmp_path / f"whole{suffix}", tmp_path / f"out{suffix}"
    translate(f"--server={server.address}", source, SHORT, "--output", whole)
    arguments = (f"--server={server.address}", source, SHORT, "--output", output)
    for _ in range(2):
        killed(output, *arguments)
    done = translate(*arguments)
    assert f"{output}: going on after line" in done.stderr
    assert output.read_bytes() == whole.read_bytes()


@pytest.mark.slow
def test_a_server_that_is_killed_and_comes_back_costs_no_line(models: Path, tmp_path: Path) -> None:
    source, output = put(tmp_path / "in.txt", LONG), tmp_path / "out.txt"
    with running_server(models) as first:
        process = started(f"--server={first.address}", source, SHORT, "--output", output)
        eventually(lambda: lines_done(output))
        first.process.kill()
        first.process.wait(30)
    assert process.poll() is None
    with running_server(models, f"--port={first.port}") as second:
        assert process.wait(60) == 0
        arguments = (f"--server={second.address}", source, SHORT, "--output")
        translate(*arguments, tmp_path / "whole.txt")
    assert text_of(output) == text_of(tmp_path / "whole.txt")


def test_a_terminal_has_a_bar_with_the_rate(server: RunningServer, tmp_path: Path) -> None:
    source = put(tmp_path / "in.txt", TEXT)
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 120))
    arguments = (f"--server={server.address}", str(source), f"--output={tmp_path}/out.txt", GREEDY)
    command = [sys.executable, "-m", "service", "translate", *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=theirs) as process:
        os.close(theirs)
        shown = b"".join(iter(lambda: _read(ours), b""))
        assert process.stdout and process.stdout.read().startswith(f"{tmp_path}/out.txt".encode())
    os.close(ours)
    assert process.returncode == 0
    assert b"in.txt: 100% |" in shown and b" sentences/s]" in shown


def _read(terminal: int) -> bytes:
    """What was written to it; nothing once nobody can write any more."""
    try:
        return os.read(terminal, 4096)
    except OSError:
        return b""
