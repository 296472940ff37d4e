"""Checkpoints: tensors and plain values, replaced atomically, read without pickled code.

Both files of a run hold `config`, `model_config`, `vocabulary`, `step`, `best_bleu` and
`average`, the averaged weights; `last.pt` also holds all that training goes on from.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from training.config import TrainingConfig
from training.model import Translator, build_model


class CheckpointError(ValueError):
    """A file that is no checkpoint."""


@dataclass(frozen=True, slots=True)
class TrainedTranslator:
    """What evaluation and export need of a checkpoint."""

    model: Translator  # with the averaged weights, in evaluation mode
    vocabulary: bytes  # of the SentencePiece file
    config: TrainingConfig
    step: int
    validation_bleu: float  # greedy; the best so far


def load_translator(path: Path) -> TrainedTranslator:
    """Build the model of `best.pt` or `last.pt` with its averaged weights.

    Raises:
        FileNotFoundError, CheckpointError: as `load_checkpoint`.
    """
    state = load_checkpoint(path)
    try:
        model = build_model(state["model_config"])
        model.load_state_dict(state["average"])
        return TrainedTranslator(
            model=model.eval(),
            vocabulary=tensor_to_bytes(state["vocabulary"]),
            config=TrainingConfig.from_dict(state["config"]),
            step=state["step"],
            validation_bleu=state["best_bleu"],
        )
    except (KeyError, TypeError, AttributeError, RuntimeError) as exc:
        raise _no_checkpoint(path) from exc


def save_checkpoint(path: Path, state: Mapping[str, Any]) -> None:
    """Write nested dicts and lists of tensors, numbers and strings.

    A process killed at any moment leaves either the old or the new checkpoint; a power cut too.
    """
    temporary = path.with_name(path.name + ".partial")
    with temporary.open("wb") as file:
        torch.save(dict(state), file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Read what `save_checkpoint` wrote, on the CPU.

    Raises:
        FileNotFoundError: if there is none.
        CheckpointError: if the file holds anything but tensors and plain values, or less than all.
    """
    with path.open("rb"):
        pass  # or it is not there, and not ours to read
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as exc:  # torch has many for what it can't read, OSError among them
        raise _no_checkpoint(path) from exc
    if not isinstance(state, dict):
        raise _no_checkpoint(path)
    return state


def _no_checkpoint(path: Path) -> CheckpointError:
    return CheckpointError(f"{path} is no checkpoint; give a run's best.pt or last.pt")


def bytes_to_tensor(content: bytes) -> torch.Tensor:
    """Return the bytes as a (size,) uint8 tensor, the form in which a checkpoint holds them."""
    return torch.frombuffer(bytearray(content), dtype=torch.uint8)


def tensor_to_bytes(content: torch.Tensor) -> bytes:
    """The inverse of `bytes_to_tensor`."""
    return content.numpy().tobytes()
