"""Training of a tiny model: it learns, it resumes to the last bit, it stops when asked."""

import gzip
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.nn import functional

from training.checkpoint import (
    CheckpointError,
    load_checkpoint,
    load_translator,
    save_checkpoint,
)
from training.config import ConfigError, TrainingConfig, load_config
from training.dropout import ByteDropout
from training.loss import smoothed_cross_entropy
from training.optimizer import rate_scale
from training.train import Trainer, resume, start
from training.vocabulary import merge_ranks

ROOT = Path(__file__).parents[2]


def weights(directory: Path) -> dict[str, torch.Tensor]:
    state = load_checkpoint(directory / "last.pt")
    return {
        f"{part}.{name}": state[part][name] for part in ("model", "average") for name in state[part]
    }


def assert_same_weights(first: Path, second: Path) -> None:
    one, other = weights(first), weights(second)
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)


def command(config_path: Path, directory: Path) -> list[str]:
    arguments = ["train", str(config_path), "--directory", str(directory), "--resume", "auto"]
    return [sys.executable, "-m", "training", *arguments]


def with_steps(config: TrainingConfig, total_steps: int) -> TrainingConfig:
    return replace(config, run=replace(config.run, total_steps=total_steps))


def with_distilled(config: TrainingConfig, distilled: str) -> TrainingConfig:
    """`config` with two more pairs, of which `distilled` is the name or the path."""
    more = b"The cat is big.\tLe cat est big.\nThe dog is red.\tLe dog est red."
    Path(config.data.data_dir, "more.tsv.gz").write_bytes(gzip.compress(more))
    return replace(config, data=replace(config.data, distilled=distilled))


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_training_lowers_the_validation_loss(
    config: TrainingConfig, tmp_path: Path, optimizer: str
) -> None:
    config = replace(config, optimizer=replace(config.optimizer, name=optimizer))
    trainer = start(config, tmp_path / "run")
    before = trainer.validate().loss
    assert trainer.run()
    assert trainer.validate().loss < 0.7 * before


def test_a_killed_run_ends_with_the_weights_of_one_that_was_not(
    config: TrainingConfig, config_path: Path, tmp_path: Path
) -> None:
    """kill -9 whenever a checkpoint was just announced, until the run gets to its end."""
    start(config, tmp_path / "whole").run()
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    for saves_before_the_kill in (2, 5):
        process = subprocess.Popen(
            command(config_path, tmp_path / "killed"),
            cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert process.stderr is not None
        saves = 0
        for line in process.stderr:
            saves += ": saved" in line
            if saves == saves_before_the_kill:
                process.kill()
                break
        process.stderr.close()
        assert process.wait() == -signal.SIGKILL
    resume(tmp_path / "killed", config).run()
    assert_same_weights(tmp_path / "whole", tmp_path / "killed")


def test_sigterm_saves_and_the_run_goes_on_from_there(
    config: TrainingConfig, config_path: Path, tmp_path: Path
) -> None:
    start(config, tmp_path / "whole").run()
    process = subprocess.Popen(
        command(config_path, tmp_path / "stopped"), cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    next(line for line in process.stderr if ": saved" in line)
    process.terminate()
    process.communicate()
    assert process.returncode == 1
    assert load_checkpoint(tmp_path / "stopped" / "last.pt")["step"] < config.run.total_steps
    resume(tmp_path / "stopped", config).run()
    assert_same_weights(tmp_path / "whole", tmp_path / "stopped")


def test_a_checkpoint_rebuilds_the_averaged_model(config: TrainingConfig, tmp_path: Path) -> None:
    trainer = start(with_steps(config, 10), tmp_path / "run")
    trainer.run()
    last, best = (load_translator(tmp_path / "run" / name) for name in ("last.pt", "best.pt"))
    average = trainer.average.model.state_dict()
    assert (last.step, best.step) == (10, 10) or best.step == 8
    assert all(torch.equal(value, average[name]) for name, value in last.model.state_dict().items())
    for trained in (last, best):
        assert trained.config == trainer.config
        assert trained.vocabulary == (tmp_path / "run" / "vocabulary.model").read_bytes()


def test_a_file_that_is_no_checkpoint_is_refused_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "best.pt"
    path.write_bytes(b"pickled")
    with pytest.raises(CheckpointError, match=r"best\.pt is no checkpoint; give"):
        load_checkpoint(path)


def test_a_shorter_schedule_can_be_given_when_resuming(
    config: TrainingConfig, tmp_path: Path
) -> None:
    start(with_steps(config, 10), tmp_path / "run").run()
    trainer: Trainer = resume(tmp_path / "run", with_steps(config, 15))
    trainer.run()
    assert trainer.progress.step == 15


def test_a_run_begins_its_next_epoch_when_pairs_are_added(
    config: TrainingConfig, tmp_path: Path
) -> None:
    trainer = start(with_steps(config, 10), tmp_path / "run")
    trainer.run()
    same: Trainer = resume(tmp_path / "run", config)
    assert same.progress == trainer.progress
    assert same.progress.batch > 0
    more = resume(tmp_path / "run", with_distilled(config, "more.tsv.gz"))
    assert (more.progress.step, more.progress.batch) == (10, 0)
    assert more.progress.epoch == trainer.progress.epoch + 1
    assert more.run()


def test_distilled_pairs_train_beside_the_corpus_and_leave_the_vocabulary_alone(
    config: TrainingConfig, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="training.data")
    by_path = (tmp_path / "more.tsv.gz").as_posix()
    vocabularies = []
    for directory, distilled in (("plain", ""), ("taught", "more.tsv.gz"), ("again", by_path)):
        start(with_distilled(config, distilled), tmp_path / directory)
        vocabularies.append(merge_ranks((tmp_path / directory / "vocabulary.model").read_bytes()))
    assert vocabularies == vocabularies[:1] * 3
    sizes = [record.getMessage().split()[0] for record in caplog.records]
    assert sizes == ["36", "38", "38"]


def test_a_second_run_in_a_directory_is_refused(config: TrainingConfig, tmp_path: Path) -> None:
    start(with_steps(config, 1), tmp_path / "run").run()
    with pytest.raises(FileExistsError, match="--resume auto"):
        start(config, tmp_path / "run")


def test_an_interrupted_write_leaves_the_old_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "last.pt"
    save_checkpoint(path, {"step": 1})
    with pytest.raises(TypeError):
        save_checkpoint(path, {"step": 2, "bad": (value for value in "not to be pickled")})
    assert load_checkpoint(path) == {"step": 1}


def test_the_loss_and_its_gradient_are_those_of_torch() -> None:
    torch.manual_seed(0)
    logits = torch.randn(100, 17, requires_grad=True)
    labels = torch.randint(17, (100,))
    expected = functional.cross_entropy(logits, labels, label_smoothing=0.1)
    (expected_gradient,) = torch.autograd.grad(3 * expected, logits)
    loss = smoothed_cross_entropy(logits, labels, 0.1)
    (gradient,) = torch.autograd.grad(3 * loss, logits)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
    assert torch.allclose(gradient, expected_gradient, atol=1e-7)


def test_byte_dropout_keeps_the_mean_and_drops_the_share_asked_for() -> None:
    torch.manual_seed(0)
    dropout = ByteDropout(0.25)
    dropped = dropout(torch.ones(1001, 99))
    assert (dropped == 0).float().mean().item() == pytest.approx(0.25, abs=0.01)
    assert dropped.max().item() == pytest.approx(4 / 3)
    assert torch.equal(dropout.eval()(dropped), dropped)


def test_the_rate_rises_to_its_peak_and_falls_to_zero() -> None:
    scales = [rate_scale(step, warmup_steps=4, total_steps=10) for step in range(11)]
    assert scales[:4] == [0.25, 0.5, 0.75, 1.0]
    assert scales[7] == pytest.approx(0.5)
    assert scales[10] == 0.0


def test_the_shipped_configurations_are_valid() -> None:
    for path in (ROOT / "training" / "configs").glob("*.toml"):
        assert load_config(path).name == path.stem


def test_every_fault_of_a_configuration_is_named_at_once(config_path: Path) -> None:
    text = config_path.read_text()
    text = text.replace("seed = 1", "sed = 1").replace("total_steps = 24", 'total_steps = "many"')
    text = text.replace("[0.9, 0.98]", '[0.9, "0.98"]')
    config_path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_config(config_path)
    for fault in (
        "unknown key run.sed",
        "run.seed is missing",
        "run.total_steps = 'many' is not an integer",
        "optimizer.betas = [0.9, '0.98'] is not a list of numbers",
    ):
        assert fault in str(caught.value)


def test_languages_must_be_those_of_the_columns(config_path: Path) -> None:
    config_path.write_text(
        config_path.read_text().replace('target_language = "fr"', 'target_language = "de"')
    )
    with pytest.raises(ConfigError, match="column_languages"):
        load_config(config_path)
