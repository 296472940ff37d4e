"""Batches, as Ray Data gives them to its workers, and Ray itself with two of them."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from service.client.bulk import BatchTranslator
from service.errors import InvalidArgument
from service.pb import translation_pb2 as pb
from tests.bulk.files import put, text_of
from tests.corpus import ROOT, SENTENCES
from tests.running_server import RunningServer, run_service

TEXTS = [f"{sentence} {number}" for number in range(5) for sentence in (*SENTENCES, "", "1 + 1")]
REQUEST = pb.TranslateRequest(
    options=pb.DecodingOptions(beam_size=1),
    text_options=pb.TextOptions(long_sentences=pb.LONG_SENTENCES_REFUSE),
)
# No token in the home folder for a cluster that nobody else reaches, nothing told to Ray's makers.
QUIET = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0", "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    text = "".join(f"{text}\n" for text in TEXTS)
    return put(tmp_path_factory.mktemp("ray") / "in.txt", text.encode())


@pytest.fixture(scope="module")
def expected(source: Path, server: RunningServer) -> tuple[str, list[int]]:
    """What the command makes of the same lines, and the numbers of those that are too long."""
    output = source.with_name("expected.txt")
    flags = (f"--server={server.address}", "--beam-size=1", "--refuse-long")
    done = run_service("translate", *flags, str(source), f"--output={output}")
    failed = [*map(int, done.stdout.rpartition("lines ")[2].split(", "))]
    assert 1 < len(failed) < len(TEXTS) / 2
    return text_of(output).decode(), failed


def test_batches_become_what_the_lines_of_a_file_become(
    expected: tuple[str, list[int]], server: RunningServer
) -> None:
    translator = BatchTranslator(server=server.address, request=REQUEST, column="en", into="fr")
    batches = [TEXTS[:100], TEXTS[100:], []]
    answers = [translator({"en": texts, "id": texts}) for texts in batches]
    assert [[*answer] for answer in answers] == [["en", "id", "fr", "error"]] * 3
    found = [text for answer in answers for text in answer["fr"]]
    faults = [fault for answer in answers for fault in answer["error"]]
    numbers = [number for number, fault in enumerate(faults, start=1) if fault]
    assert ("".join(f"{text or ''}\n" for text in found), numbers) == expected
    assert all(found[number - 1] is None for number in numbers)


def test_a_request_that_no_text_makes_right_is_refused_at_once(server: RunningServer) -> None:
    request = pb.TranslateRequest(options=pb.DecodingOptions(beam_size=-1))
    with pytest.raises(InvalidArgument, match="beam_size"):
        BatchTranslator(server=server.address, request=request)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs the extra `ray`")
def test_two_workers_of_ray_make_what_one_process_makes(
    expected: tuple[str, list[int]], source: Path, models: Path, tmp_path: Path
) -> None:
    program = ROOT / "tests" / "bulk" / "ray_lines.py"
    done = subprocess.run(
        [sys.executable, str(program), str(source), str(models), str(tmp_path / "out.txt")],
        env={**os.environ, "PYTHONPATH": str(ROOT), **QUIET},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    numbers = [*map(int, done.stdout.splitlines()[-1].split())]
    assert ((tmp_path / "out.txt").read_text(), numbers) == expected
