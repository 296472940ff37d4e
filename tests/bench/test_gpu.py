"""The comparison on a GPU, run on the CPU: only that it works."""

from pathlib import Path

import pytest

from bench.gpu import main
from service.session import device_fault


def test_every_system_translates_with_the_weights_of_every_bundle(
    models: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sentences = tmp_path / "sentences.txt"
    sentences.write_text("Two women walk.\nthe dog\n")
    arguments = ["--device=cpu", "--rounds=1", f"--models={models}", f"--sentences={sentences}"]
    assert main(arguments) == 0
    text = capsys.readouterr().out
    assert text.count("this engine") == text.count("pytorch") == 4
    assert text.count("ctranslate2") == 2


@pytest.mark.skipif(device_fault("cuda") is None, reason="there is a device")
def test_without_a_device_it_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 1
    assert "device cuda can't be had" in capsys.readouterr().err
