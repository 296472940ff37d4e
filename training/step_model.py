"""A torch translator as the `StepModel` that the service's search drives."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from service.decoding import StepOutput
from training.data import pad
from training.model import TensorSpec, Translator
from training.vocabulary import BOS_ID, EOS_ID


class TorchStepModel:
    """Rows in flight on a `Translator`, which it puts in evaluation mode.

    Its heads are `attention_heads`, by default all of all layers.
    """

    start_id = BOS_ID
    eos_id = EOS_ID

    def __init__(self, model: Translator, attention_heads: slice = slice(None)) -> None:
        self._model = model.eval()
        self._heads = attention_heads
        self._lengths = torch.zeros(0, dtype=torch.int64)
        self._memory: tuple[Tensor, ...] = ()
        self._state: tuple[Tensor, ...] = ()
        self._log_probs: Tensor
        self._output: StepOutput

    @torch.inference_mode()
    def append(
        self,
        sources: Sequence[Sequence[int]],
        beam_size: int,
        shortlist: Sequence[bool] | None = None,
    ) -> None:
        """Encode newcomers, ids with EOS, and append `beam_size` rows for each."""
        lengths = torch.tensor([len(source) for source in sources])
        memory, state = self._model.encode(pad(sources), lengths)
        state = tuple(tensor.repeat_interleave(beam_size, 0) for tensor in state)
        if len(self._lengths):
            memory = _appended(self._memory, memory, self._model.memory_specs)
            state = _appended(self._state, state, self._model.state_specs)
        self._memory, self._state = memory, state
        self._lengths = torch.cat([self._lengths, lengths])

    @torch.inference_mode()
    def step(
        self,
        tokens: NDArray[np.int64],
        positions: NDArray[np.int32],
        num_candidates: int,
        attention: bool,
        full: bool = False,
    ) -> StepOutput:
        """Feed (sentences, beams) tokens at (rows,) positions; give each row's best candidates."""
        output = self._model.step(
            torch.from_numpy(tokens),
            torch.from_numpy(positions),
            self._lengths,
            self._memory,
            self._state,
        )
        self._state = output.state
        self._log_probs = output.logits.float().log_softmax(-1)
        weights = output.attention[:, self._heads].numpy() if attention else None
        everything = self._log_probs.numpy() if full else None
        self._output = StepOutput(*self._best(num_candidates), weights, everything)
        return self._output

    def more(self, num_candidates: int) -> StepOutput:
        """The last step's output with more candidates."""
        log_probs, ids = self._best(num_candidates)
        return replace(self._output, log_probs=log_probs, ids=ids)

    @torch.inference_mode()
    def reorder(self, rows: NDArray[np.int64]) -> None:
        """Let new row i continue old row rows[i]; sentences not named leave."""
        beam_size = len(self._state[0]) // max(1, len(self._lengths))
        chosen = torch.from_numpy(rows)
        sentences = chosen[::beam_size] // beam_size
        self._state = tuple(tensor[chosen] for tensor in self._state)
        self._memory = tuple(tensor[sentences] for tensor in self._memory)
        self._lengths = self._lengths[sentences]

    def _best(self, num_candidates: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        best = self._log_probs.topk(min(num_candidates, self._log_probs.size(1)))
        return best.values.numpy(), best.indices.numpy()


def _appended(
    old: Sequence[Tensor], new: Sequence[Tensor], specs: Sequence[TensorSpec]
) -> tuple[Tensor, ...]:
    """Concatenate rows; other axes that differ in size ("source", "target") are padded."""
    joined = []
    for before, after, spec in zip(old, new, specs, strict=True):
        sizes = [max(before.size(axis), after.size(axis)) for axis in range(1, len(spec.axes))]
        joined.append(torch.cat([_padded(before, sizes), _padded(after, sizes)]))
    return tuple(joined)


def _padded(tensor: Tensor, sizes: Sequence[int]) -> Tensor:
    """Pad the axes after the first to `sizes` with zeros."""
    missing = [size - have for size, have in zip(sizes, tensor.shape[1:], strict=True)]
    return functional.pad(tensor, [amount for size in reversed(missing) for amount in (0, size)])
