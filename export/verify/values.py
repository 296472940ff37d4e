"""Every number of a graph against torch's: batches, beams, ragged lengths, mixed positions."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from service.session import Graphs
from training.data import pad
from training.model import TensorSpec, Translator
from training.vocabulary import EOS_ID

BATCHES = ((1, 1), (2, 4), (7, 1), (7, 4), (32, 1))
"""(sentences, beams)"""
NUM_STEPS = 8
MAX_SOURCE = 24
_FIRST_WORD = EOS_ID + 1

Arrays = dict[str, NDArray[Any]]


@torch.no_grad()
def value_error(model: Translator, graphs: Graphs, attention_heads: slice) -> float:
    """The largest absolute difference of memory, hidden state, log-probabilities and attention.

    `attention_heads` are the heads of torch's `StepOutput.attention` that the step graph returns.
    """
    random = np.random.default_rng(0)
    errors = []
    for num_sentences, num_beams in BATCHES:
        lengths = random.integers(1, MAX_SOURCE + 1, num_sentences)
        lengths[-1] = 1
        twins = _Twins(model, graphs, attention_heads, lengths, num_beams)
        errors.append(twins.encode(random))
        # Each row stops moving at a position of its own, so that later steps mix positions.
        last_positions = random.integers(0, NUM_STEPS, num_sentences * num_beams)
        for position in range(NUM_STEPS):
            errors.append(twins.step(random, np.minimum(position, last_positions)))
    return max(errors)


class _Twins:
    """The same sentences in torch and in the graphs."""

    def __init__(
        self,
        model: Translator,
        graphs: Graphs,
        attention_heads: slice,
        lengths: NDArray[np.int64],
        num_beams: int,
    ) -> None:
        self._model = model
        self._graphs = graphs
        self._heads = attention_heads
        self._lengths = lengths
        self._num_beams = num_beams
        self._memory: tuple[Tensor, ...] = ()
        self._state: tuple[Tensor, ...] = ()
        self._kept: Arrays = {}

    def encode(self, random: np.random.Generator) -> float:
        """Encode random words and return the largest error of what is real, not padding."""
        size = self._model.source_embedding.weight.size(0)
        lengths: list[int] = self._lengths.tolist()
        sources = pad([[*_words(random, n - 1, size), EOS_ID] for n in lengths])
        self._memory, state = self._model.encode(sources, torch.from_numpy(self._lengths))
        feeds = {"source_ids": sources.numpy(), "source_lengths": self._lengths}
        self._kept = _run(self._graphs.encoder, feeds)
        error = 0.0
        for spec, tensor in zip(self._model.memory_specs, self._memory, strict=True):
            valid = self._valid(spec, tensor)
            error = max(error, _distance(tensor.numpy() * valid, self._kept[spec.name] * valid))
        self._state = tuple(tensor.repeat_interleave(self._num_beams, 0) for tensor in state)
        for spec, tensor in zip(self._model.state_specs, self._state, strict=True):
            if "target" in spec.axes:
                self._kept[spec.name] = _empty_cache(spec, len(tensor), self._dtype_of(spec))
            else:
                self._kept[spec.name] = self._kept[spec.name].repeat(self._num_beams, 0)
                error = max(error, _distance(tensor.numpy(), self._kept[spec.name]))
        return error

    def step(self, random: np.random.Generator, positions: NDArray[np.int64]) -> float:
        """Feed random words and return the largest error of the predictions and the attention."""
        size = self._graphs.manifest.vocabulary_size
        tokens = np.array(_words(random, len(positions), size)).reshape(-1, self._num_beams)
        lengths = torch.from_numpy(self._lengths)
        expected = self._model.step(
            torch.from_numpy(tokens),
            torch.from_numpy(positions),
            lengths,
            self._memory,
            self._state,
        )
        self._state = expected.state
        feeds = {
            "tokens": tokens,
            "positions": positions.astype(np.int32),
            "source_lengths": self._lengths,
            "num_candidates": np.array([2]),
        }
        outputs = _run(self._graphs.step, self._kept | feeds)
        self._kept |= {s.name: outputs[f"next_{s.name}"] for s in self._model.state_specs}
        log_probs = torch.log_softmax(expected.logits, -1)
        return max(
            _distance(log_probs.numpy(), outputs["log_probs"]),
            _distance(log_probs.topk(2).values.numpy(), outputs["candidate_log_probs"]),
            _distance(expected.attention[:, self._heads].numpy(), outputs["attention"]),
        )

    def _dtype_of(self, spec: TensorSpec) -> str:
        """In the graphs."""
        [dtype] = (own.dtype for own in self._graphs.manifest.state if own.name == spec.name)
        return dtype

    def _valid(self, spec: TensorSpec, tensor: Tensor) -> NDArray[np.bool_]:
        """True at real source positions, in a shape that broadcasts over the tensor."""
        axis = spec.axes.index("source")
        shape = [1] * tensor.dim()
        shape[0], shape[axis] = tensor.size(0), tensor.size(axis)
        valid: NDArray[np.bool_] = np.arange(tensor.size(axis)) < self._lengths[:, None]
        return valid.reshape(shape)


def _words(random: np.random.Generator, count: int, vocabulary_size: int) -> list[int]:
    words: list[int] = random.integers(_FIRST_WORD, vocabulary_size, count).tolist()
    return words


def _run(session: Any, feeds: Arrays) -> Arrays:
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


def _empty_cache(spec: TensorSpec, num_rows: int, dtype: str) -> NDArray[Any]:
    sizes = {"sentence * beam": num_rows, "target": NUM_STEPS}
    return np.zeros([sizes[a] if isinstance(a, str) else a for a in spec.axes], dtype)


def _distance(expected: NDArray[Any], found: NDArray[Any]) -> float:
    return float(np.abs(expected - found).max())
