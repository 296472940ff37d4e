"""What can't be done is said in one line, before anything is done."""

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from training.__main__ import main
from training.checkpoint import save_checkpoint
from training.config import TrainingConfig, load_config
from training.train import resume, start

Fault = Callable[..., str]


@pytest.fixture
def fault_of(capsys: pytest.CaptureFixture[str]) -> Fault:
    """Runs a command that must fail, and returns the line that says why."""

    def run(*arguments: object) -> str:
        assert main([str(argument) for argument in arguments]) == 2
        [line] = capsys.readouterr().err.splitlines()
        return line.removeprefix("python -m training: ")

    return run


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("every_steps = 8", "every_steps = 0", "run.validate_every_steps = 0 must be at least 1"),
        ("total_steps = 24", "total_steps = 0", "run.total_steps = 0 must be at least 1"),
        ("join = 0.1", "join = 1.5", "augment.join = 1.5 must be from 0 to 1"),
        ("max_tokens = 40", "max_tokens = 2", "none of 36 pairs is fit to train on"),
        ("size = 430", "size = 90000", "vocabulary.size = 90000 doesn't suit the text"),
        ("size = 430", "size = 10", "vocabulary.size = 10 doesn't suit the text"),
        ("num_heads = 2", "num_heads = 3", "num_heads"),
        ('"transformer"', '"gpt"', "architecture is 'gpt'"),
        ('train = "pairs', 'train = "empty', "empty.tsv.gz is empty"),
        ('train = "pairs', 'train = "text', "text.tsv.gz is no gzipped UTF-8 text"),
    ],
)
def test_what_cannot_be_trained_with_is_named(
    old: str, new: str, fault: str, config_path: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty.tsv.gz").write_bytes(gzip.compress(b""))
    (tmp_path / "text.tsv.gz").write_text("no\tgzip\n")
    text = config_path.read_text()
    assert old in text
    config_path.write_text(text.replace(old, new))
    with pytest.raises(ValueError, match=re.escape(fault)):
        start(load_config(config_path), tmp_path / "run")


@pytest.mark.parametrize("steps", [0, -5])
def test_a_run_without_steps_is_refused(steps: int, config_path: Path, fault_of: Fault) -> None:
    fault = fault_of("train", config_path, f"--total-steps={steps}")
    assert fault == f"run.total_steps = {steps} must be at least 1"


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        ("model_size = 16", "model_size = 32", "model_size was 16, 32 is wanted"),
        ("num_heads = 2", "num_heads = 4", "num_heads was 2, 4 is wanted"),
        ('"muon"', '"adam"', "optimizer was muon, adam is wanted"),
    ],
)
def test_a_run_is_not_continued_with_another_model(
    old: str, new: str, change: str, config: TrainingConfig, config_path: Path
) -> None:
    directory = config_path.parent / "run"
    trainer = start(config, directory)
    save_checkpoint(directory / "last.pt", trainer.state())
    config_path.write_text(config_path.read_text().replace(old, new))
    with pytest.raises(ValueError, match=f"was of another model: {change}; change"):
        resume(directory, load_config(config_path))


def test_what_is_no_checkpoint_is_named(
    config: TrainingConfig, config_path: Path, tmp_path: Path, fault_of: Fault
) -> None:
    whole = tmp_path / "last.pt"
    trainer = start(config, tmp_path / "run")
    save_checkpoint(whole, trainer.state())
    cut, other = tmp_path / "cut.pt", tmp_path / "other.pt"
    cut.write_bytes(whole.read_bytes()[:5000])
    torch.save({"weights": torch.zeros(3)}, other)
    for path in (cut, other, config_path, tmp_path / "run" / "vocabulary.model"):
        fault = fault_of("evaluate", path)
        assert fault == f"{path} is no checkpoint; give a run's best.pt or last.pt"
