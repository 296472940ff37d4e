"""Optimizers, the learning-rate schedule and the moving average of the weights."""

from collections.abc import Sequence

import torch
from torch import nn

from training.config import OptimizerConfig
from training.model import Translator


def build_optimizers(
    model: nn.Module, config: OptimizerConfig, vocabulary_size: int
) -> list[torch.optim.Optimizer]:
    """Return the optimizers that together own every trained parameter once.

    "adam": Kingma and Ba 2015 for all. "muon" (Jordan et al. 2024): orthogonalised momentum for
    the matrices of the hidden layers; embeddings, the output layer, biases and gains stay with
    Adam, as its authors advise.
    """
    matrices, others = (
        _split(model, vocabulary_size) if config.name == "muon" else ([], list(model.parameters()))
    )
    optimizers: list[torch.optim.Optimizer] = [
        torch.optim.Adam(
            others, lr=config.peak_rate, betas=(config.betas[0], config.betas[1]), fused=True
        )
    ]
    if matrices:
        optimizers.append(
            torch.optim.Muon(
                matrices,
                lr=config.muon_peak_rate,
                weight_decay=config.weight_decay,
                adjust_lr_fn="match_rms_adamw",
            )
        )
    return optimizers


def rate_scale(step: int, warmup_steps: int, total_steps: int) -> float:
    """Return the share of the peak rate at `step`, from 0: a linear rise, then a linear fall."""
    rise = (step + 1) / max(1, warmup_steps)
    fall = (total_steps - step) / max(1, total_steps - warmup_steps)
    return max(0.0, min(1.0, rise, fall))


def set_rates(
    optimizers: Sequence[torch.optim.Optimizer], config: OptimizerConfig, scale: float
) -> None:
    """Set the rates of what `build_optimizers` returned to `scale` times their peaks."""
    for optimizer, peak in zip(optimizers, (config.peak_rate, config.muon_peak_rate), strict=False):
        for group in optimizer.param_groups:
            group["lr"] = peak * scale


class MovingAverage:
    """An exponential moving average of a model's weights, kept in a second model.

    Polyak and Juditsky 1992. The decay is smaller in the first steps, so that the random start is
    soon forgotten.
    """

    def __init__(self, average: Translator, decay: float) -> None:
        self.model = average.requires_grad_(False).eval()
        self._decay = decay

    def update(self, model: nn.Module, step: int) -> None:
        """Move a little towards the weights of `model` after `step`, counted from 0."""
        weight = 1.0 - min(self._decay, (1 + step) / (10 + step))
        with torch.no_grad():
            torch._foreach_lerp_(list(self.model.parameters()), list(model.parameters()), weight)


def _split(model: nn.Module, vocabulary_size: int) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """Part the hidden layers' matrices from the rest."""
    parameters = list(model.parameters())
    hidden = [
        p.ndim == 2 and min(p.shape) > 1 and p.shape[0] != vocabulary_size for p in parameters
    ]
    matrices = [p for p, is_hidden in zip(parameters, hidden, strict=True) if is_hidden]
    others = [p for p, is_hidden in zip(parameters, hidden, strict=True) if not is_hidden]
    return matrices, others
