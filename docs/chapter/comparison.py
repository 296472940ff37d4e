"""The two networks of section 3: a recurrent translator with attention, and its twin without.

Both are trained by the project's training loop with `seq2seq.toml`, on the same batches from the
same first weights. A run that was stopped goes on with the next `make figures`, and one that has
ended isn't repeated unless its configuration has changed.
"""

import dataclasses
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from docs.chapter.figure import ROOT, Run
from docs.chapter.sentences import write_sentences
from service.text import Tokenizer
from training.bahdanau import Bahdanau
from training.checkpoint import load_checkpoint, load_translator
from training.config import TrainingConfig, load_config
from training.evaluate import load_eval_set
from training.memory import keep_freed_memory
from training.train import resume, start
from training.vocabulary import load_vocabulary

CONFIG = Path(__file__).with_name("seq2seq.toml")
WITH, WITHOUT = "with attention", "without attention"
_RUNS = ROOT / "runs"
# For some two hundred sentences; 460 are bytes and single characters.
_FEW_PIECES = 700
_STEPS_BY_HEART = 150
_QUICK_STEPS = 3

Curve: TypeAlias = Mapping[int, float]
"""A value by the number of steps that came before it."""


@dataclass(frozen=True, eq=False)
class Learner:
    """A trained network, and how it got there."""

    model: Bahdanau
    tokenizer: Tokenizer
    sources: list[str]
    """To be tested on: none that it was trained on, unless it had only those of `written.tsv`."""
    references: list[list[str]]
    """Of each source."""
    curves: Mapping[str, Curve]
    """train/loss, smoothed as it is trained on; valid/loss in nats a token, valid/bleu greedy."""


@lru_cache(maxsize=2)
def learners(run: Run) -> dict[str, Learner]:
    """Both networks, trained now if they aren't yet; a quick run takes a few steps of each."""
    if run.quick:
        with tempfile.TemporaryDirectory() as folder:
            return _train_both(run, Path(folder))
    return _train_both(run, _RUNS / ("chapter-by-heart" if is_by_heart(run) else "chapter"))


def _train_both(run: Run, directory: Path) -> dict[str, Learner]:
    keep_freed_memory()
    write_sentences(None if is_by_heart(run) else run.data_dir, directory / "sentences")
    return {
        name: train(configuration(run, directory, name), directory / name.replace(" ", "-"))
        for name in (WITHOUT, WITH)
    }


def is_by_heart(run: Run) -> bool:
    """True where only the written sentences are trained on."""
    return run.quick or not run.data_dir.is_dir()


def configuration(run: Run, directory: Path, name: str) -> TrainingConfig:
    """What `seq2seq.toml` says, made smaller for a few sentences."""
    config = load_config(CONFIG)
    data = dataclasses.replace(config.data, data_dir=str(directory / "sentences"))
    config = dataclasses.replace(
        config, name=name, data=data, model={**config.model, "attention": name == WITH}
    )
    if not is_by_heart(run):
        return config
    steps = _QUICK_STEPS if run.quick else _STEPS_BY_HEART
    validated = 8 if run.quick else config.run.validation_sentences
    return dataclasses.replace(
        config,
        data=dataclasses.replace(data, batch_tokens=512, common_tokens=0),
        vocabulary=dataclasses.replace(config.vocabulary, size=_FEW_PIECES),
        run=dataclasses.replace(
            config.run,
            total_steps=steps,
            log_every_steps=1,
            validate_every_steps=min(steps, 15),
            validation_sentences=validated,
        ),
    )


def train(config: TrainingConfig, directory: Path) -> Learner:
    """Train to the last step, from wherever an earlier run of the same configuration got.

    Raises:
        KeyboardInterrupt: if a signal ends it before; what was reached is kept.
    """
    saved = _saved(config, directory)
    if not saved or saved["step"] < config.run.total_steps:
        if not saved:
            shutil.rmtree(directory, ignore_errors=True)
        trainer = resume(directory, config) if saved else start(config, directory)
        if not trainer.run():
            raise KeyboardInterrupt
    trained = load_translator(directory / "best.pt")
    assert isinstance(trained.model, Bahdanau)
    sources, references = load_eval_set(Path(config.data.data_dir, config.data.test))
    tokenizer = load_vocabulary(trained.vocabulary)
    return Learner(trained.model, tokenizer, sources, references, _curves(directory))


def _saved(config: TrainingConfig, directory: Path) -> Mapping[str, Any] | None:
    """The state of the run in the directory, if it is one of this configuration."""
    last = directory / "last.pt"
    state = load_checkpoint(last) if last.exists() else None
    return state if state and state["config"] == config.to_dict() else None


def _curves(directory: Path) -> dict[str, Curve]:
    events = EventAccumulator(str(directory), size_guidance={"scalars": 0})
    events.Reload()
    return {
        tag: {event.step: event.value for event in events.Scalars(tag)}
        for tag in ("train/loss", "valid/loss", "valid/bleu")
    }
