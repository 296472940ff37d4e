"""The training loop: one run directory, exact resumption.

A run directory holds `last.pt` (everything that the next step depends on), `best.pt` (the
averaged weights with the best validation BLEU), `vocabulary.model`, `log.txt` and TensorBoard
events. A run that was killed and resumed takes the same steps, to the last bit, as one that was
not (on one machine, with one thread count).
"""

import copy
import logging
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

from training.checkpoint import bytes_to_tensor, load_checkpoint, save_checkpoint, tensor_to_bytes
from training.config import TrainingConfig
from training.data import Batch, Example, Pair, TrainingSet, collate, read_pairs
from training.dropout import use_byte_dropout
from training.evaluate import ValidationResult, Validator
from training.loss import smoothed_cross_entropy
from training.model import build_model
from training.optimizer import MovingAverage, build_optimizers, rate_scale, set_rates
from training.vocabulary import PAD_ID, load_vocabulary, train_vocabulary

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Progress:
    """Where a run stands: the next step, and the batch it takes."""

    step: int = 0
    epoch: int = 0
    batch: int = 0
    best_bleu: float = -1.0


class StopRequest:
    """Set by SIGTERM or SIGINT; the loop finishes its step, saves and returns."""

    def __init__(self) -> None:
        self.made = False

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        numbers = (signal.SIGTERM, signal.SIGINT)
        previous = [signal.signal(number, self._note) for number in numbers]
        try:
            yield
        finally:
            for number, handler in zip(numbers, previous, strict=True):
                signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.made = True


class Trainer:
    """One training run in `directory`."""

    def __init__(
        self, config: TrainingConfig, directory: Path, vocabulary: bytes, pairs: Sequence[Pair]
    ) -> None:
        self.config = config
        self.directory = directory
        self._vocabulary_bytes = vocabulary
        tokenizer = load_vocabulary(vocabulary)
        torch.set_num_threads(config.run.threads)
        torch.manual_seed(config.run.seed)
        self.model = build_model({**config.model, "vocabulary_size": tokenizer.vocabulary_size})
        use_byte_dropout(self.model)
        self.average = MovingAverage(copy.deepcopy(self.model), config.run.ema_decay)
        self.optimizers = build_optimizers(self.model, config.optimizer, tokenizer.vocabulary_size)
        self.progress = Progress()
        self._data = TrainingSet(pairs, vocabulary, config.data, config.augment, config.run.seed)
        self._validator = Validator(config, tokenizer)
        self._saved_at = time.monotonic()

    def run(self) -> bool:
        """Train up to the last step; return False if a signal ended it before. Saves both ways."""
        stop = StopRequest()
        self._saved_at = time.monotonic()
        with (
            stop.on_signals(),
            SummaryWriter(str(self.directory), purge_step=self.progress.step + 1) as writer,
            self._progress_bar() as bar,
        ):
            for examples in self._remaining_batches():
                self._train_step(collate(examples), bar, writer)
                if stop.made:
                    break
            self._save()
        return self.progress.step >= self.config.run.total_steps

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from what `state` returned: at the next batch, or with the next epoch if the
        training set has other batches now.
        """
        self.model.load_state_dict(state["model"])
        self.average.model.load_state_dict(state["average"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        torch.set_rng_state(state["rng_state"])
        self.progress = Progress(**state["progress"])
        if state.get("data") != self._data.fingerprint:
            self.progress.epoch, self.progress.batch = self.progress.epoch + 1, 0
            logger.info("the training set has changed: epoch %d begins", self.progress.epoch)

    def state(self) -> dict[str, Any]:
        """Everything that the next step depends on, as plain values."""
        progress = self.progress
        return self._description() | {
            "model": self.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "rng_state": torch.get_rng_state(),
            "data": self._data.fingerprint,
            "progress": {name: getattr(progress, name) for name in Progress.__slots__},
        }

    def _description(self) -> dict[str, Any]:
        return {
            "config": self.config.to_dict(),
            "model_config": self.model.config_dict(),
            "vocabulary": bytes_to_tensor(self._vocabulary_bytes),
            "average": self.average.model.state_dict(),
            "step": self.progress.step,
            "best_bleu": self.progress.best_bleu,
        }

    def _remaining_batches(self) -> Iterator[list[Example]]:
        """Yield batches from the current position on, moving it *after* each is trained on."""
        progress = self.progress
        while True:
            batches = self._data.batches(progress.epoch)
            while progress.batch < len(batches):
                if progress.step >= self.config.run.total_steps:
                    return
                yield batches[progress.batch]
            progress.epoch, progress.batch = progress.epoch + 1, 0

    def _train_step(self, batch: Batch, bar: "tqdm[Any]", writer: SummaryWriter) -> None:
        config, progress = self.config, self.progress
        scale = rate_scale(progress.step, config.optimizer.warmup_steps, config.run.total_steps)
        set_rates(self.optimizers, config.optimizer, scale)
        loss, num_tokens = self._update(batch)
        self.average.update(self.model, progress.step)
        progress.step += 1
        progress.batch += 1
        bar.update(num_tokens)
        if progress.step % config.run.log_every_steps == 0:
            rate = config.optimizer.peak_rate * scale
            self._log(writer, {"train/loss": loss.item(), "train/rate": rate})
            bar.set_postfix(step=progress.step, epoch=progress.epoch, loss=f"{loss.item():.3f}")
        if (
            progress.step % config.run.validate_every_steps == 0
            or progress.step == config.run.total_steps
        ):
            result = self.validate()
            self._log(writer, {"valid/loss": result.loss, "valid/bleu": result.bleu})
        if time.monotonic() - self._saved_at > config.run.checkpoint_every_seconds:
            self._save()

    def _update(self, batch: Batch) -> tuple[Tensor, int]:
        """Take one optimizer step; return the smoothed loss and the number of target tokens."""
        self.model.train()
        labels = batch.label_ids[batch.label_ids != PAD_ID]
        with torch.autocast("cpu", torch.bfloat16, enabled=self.config.run.autocast):
            features = self.model.decoder_features(
                batch.source_ids, batch.source_lengths, batch.target_ids
            )
            logits = self.model.output_layer(features[batch.label_ids != PAD_ID])
        loss = smoothed_cross_entropy(logits, labels, self.config.run.label_smoothing)
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        if not loss.isfinite():
            raise FloatingPointError(
                f"the loss is {loss.item()} at step {self.progress.step}; lower the peak rates"
            )
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.model.parameters(), self.config.optimizer.clip_norm)
        for optimizer in self.optimizers:
            optimizer.step()
        return loss.detach(), len(labels)

    def validate(self) -> ValidationResult:
        """Score the averaged weights, and keep them if they are the best so far."""
        result, progress = self._validator(self.average.model), self.progress
        logger.info(
            "step %d, epoch %d: validation loss %.4f, BLEU %.2f",
            progress.step, progress.epoch, result.loss, result.bleu,
        )  # fmt: skip
        if result.bleu > progress.best_bleu:
            progress.best_bleu = result.bleu
            save_checkpoint(self.directory / "best.pt", self._description())
        return result

    def _save(self) -> None:
        save_checkpoint(self.directory / "last.pt", self.state())
        self._saved_at = time.monotonic()
        logger.info("step %d: saved", self.progress.step)

    def _log(self, writer: SummaryWriter, scalars: dict[str, float]) -> None:
        for name, value in scalars.items():
            writer.add_scalar(name, value, self.progress.step)

    def _progress_bar(self) -> "tqdm[Any]":
        interval = 0.5 if sys.stderr.isatty() else 30.0
        return tqdm(
            unit=" target tokens", unit_scale=True, mininterval=interval, dynamic_ncols=True
        )


def start(config: TrainingConfig, directory: Path) -> Trainer:
    """Begin a run in an empty or new directory: train the vocabulary and initialise the model.

    Raises:
        FileExistsError: if a run is already there.
    """
    if (directory / "last.pt").exists():
        raise FileExistsError(
            f"{directory} already holds a run; continue it with --resume auto, or name another"
        )
    directory.mkdir(parents=True, exist_ok=True)
    corpus, *distilled = _read_training_pairs(config)
    # Of the corpus alone, so that a model has one vocabulary with and without a teacher.
    sentences = dict.fromkeys(text for pair in corpus for text in (pair.source, pair.target))
    size, coverage = config.vocabulary.size, config.vocabulary.character_coverage
    vocabulary = train_vocabulary(sentences, size, coverage)
    (directory / "vocabulary.model").write_bytes(vocabulary)
    return Trainer(config, directory, vocabulary, list(chain(corpus, *distilled)))


def resume(directory: Path, config: TrainingConfig) -> Trainer:
    """Continue the run in `directory` from its last checkpoint and vocabulary.

    What `config` says now holds from here on, dropout included, except for the vocabulary.

    Raises:
        ValueError: if the model or the kind of optimizer is another one.
    """
    state = load_checkpoint(directory / "last.pt")
    vocabulary = tensor_to_bytes(state["vocabulary"])
    pairs = list(chain.from_iterable(_read_training_pairs(config)))
    trainer = Trainer(config, directory, vocabulary, pairs)
    if changes := _changes(state, trainer):
        raise ValueError(
            f"the run in {directory} was of another model: {'; '.join(changes)}; "
            "change the configuration back, or name another directory"
        )
    trainer.restore(state)
    return trainer


def _changes(state: Mapping[str, Any], trainer: Trainer) -> list[str]:
    """What the saved weights and moments don't fit any more; dropout has neither."""
    was = state["model_config"] | {"optimizer": state["config"]["optimizer"]["name"]}
    wanted = trainer.model.config_dict() | {"optimizer": trainer.config.optimizer.name}
    return [
        f"{key} was {was[key]}, {wanted[key]} is wanted"
        for key in sorted(was.keys() & wanted.keys())
        if was[key] != wanted[key] and not key.endswith("dropout")
    ]


def _read_training_pairs(config: TrainingConfig) -> list[list[Pair]]:
    """Return the corpus first, then the distilled pairs if there are any."""
    return [read_pairs(path, config.data.source_column) for path in config.data.training_paths]
