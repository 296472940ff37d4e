"""The step graph bound to the live rows: once for each shape, then kept.

Buffers never change their address, so a binding stays right as long as the shape is the same, and a
step costs two small copies and the run itself.
"""

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import onnxruntime

from service.session.buffers import Array, RowBuffer
from service.session.graphs import Graphs
from service.session.placement import Sent
from service.session.reserve import reserve

# Of a worker; each takes 17 KiB. Under ragged load 95 of 100 steps find theirs, as without a bound.
_MAX_CALLS = 128


class Shape(NamedTuple):
    """Everything that a binding depends on."""

    sentences: int
    beams: int
    source: int
    target: int
    shortlist: int
    candidates: int
    attention: bool
    full: bool
    listed: bool
    """Whether candidates are places in the shortlist."""
    swapped: bool
    """Which of the two buffers of a state is read, and which is written."""

    @property
    def rows(self) -> int:
        return self.sentences * self.beams


@dataclass(frozen=True, slots=True)
class Call:
    """A bound step, with the arrays that it reads and writes; all calls write to the same memory.

    What is `sent` has to be bound again before each run, with the values of the moment.

    tokens (sentences, beams), positions (rows,); log_probs and ids (rows, candidates), where
    ids may be places in the shortlist; attention (rows, layers * heads, source) and
    full_log_probs (rows, vocabulary) if they were asked for.
    """

    binding: onnxruntime.IOBinding
    sent: Sent
    tokens: npt.NDArray[np.int64]
    positions: npt.NDArray[np.int32]
    log_probs: npt.NDArray[np.float32]
    ids: npt.NDArray[np.int64]
    attention: npt.NDArray[np.float32] | None
    full_log_probs: npt.NDArray[np.float32] | None


class Calls:
    """Those that one worker used last; `lengths` (sentences,) is where source lengths are found."""

    def __init__(
        self, graphs: Graphs, max_rows: int, max_source: int, lengths: npt.NDArray[np.int64]
    ) -> None:
        manifest = graphs.manifest
        self._session = graphs.step
        self._placement = graphs.placement
        self._vocabulary_size = manifest.vocabulary_size
        self._can_choose = graphs.shortlists is not None
        self._num_heads = manifest.attention.num_layers * manifest.attention.num_heads
        self._lengths = lengths
        self._kept: OrderedDict[Shape, Call] = OrderedDict()  # the last one used comes last
        # For the largest shape; untouched, it costs nothing.
        self._tokens = reserve(max_rows, np.int64)
        self._positions = reserve(max_rows, np.int32)
        self._log_probs = reserve(max_rows * self._vocabulary_size, np.float32)
        self._ids = reserve(max_rows * self._vocabulary_size, np.int64)
        self._attention = reserve(max_rows * self._num_heads * max_source, np.float32)
        self._full_log_probs = reserve(max_rows * self._vocabulary_size, np.float32)

    def call(self, shape: Shape, inputs: Sequence[RowBuffer], outputs: Sequence[RowBuffer]) -> Call:
        """The call of this shape, which reads memory and state in `inputs`, writes `outputs`."""
        call = self._kept.get(shape)
        if call is not None:
            self._kept.move_to_end(shape)
            return call
        if len(self._kept) >= _MAX_CALLS:
            self._kept.popitem(last=False)
        call = self._kept[shape] = self._prepare(shape)
        self._bind(call, shape, inputs, outputs)
        return call

    def _prepare(self, shape: Shape) -> Call:
        rows, binding = shape.rows, onnxruntime.IOBinding(self._session)
        tokens = _prefix(self._tokens, (shape.sentences, shape.beams))
        positions, lengths = self._positions[:rows], self._lengths[: shape.sentences]
        inputs = {"tokens": tokens, "positions": positions, "source_lengths": lengths}
        weights, full = (rows, self._num_heads, shape.source), (rows, self._vocabulary_size)
        return Call(
            binding,
            self._placement.bind(binding, inputs),
            tokens,
            positions,
            _prefix(self._log_probs, (rows, shape.candidates)),
            _prefix(self._ids, (rows, shape.candidates)),
            _prefix(self._attention, weights) if shape.attention else None,
            _prefix(self._full_log_probs, full) if shape.full else None,
        )

    def _bind(
        self, call: Call, shape: Shape, inputs: Sequence[RowBuffer], outputs: Sequence[RowBuffer]
    ) -> None:
        binding = call.binding
        binding.bind_cpu_input("num_candidates", np.array([shape.candidates]))
        if self._can_choose:
            binding.bind_cpu_input("whole_vocabulary", np.array([not shape.listed]))
        for buffer in inputs:
            binding.bind_input(buffer.name, *buffer.place(_num_rows(buffer, shape)))
        for buffer in outputs:
            binding.bind_output(f"next_{buffer.name}", *buffer.place(_num_rows(buffer, shape)))
        results: dict[str, Array | None] = {
            "candidate_log_probs": call.log_probs,
            "candidate_ids": call.ids,
            "attention": call.attention,
            "log_probs": call.full_log_probs,
        }
        for name, array in results.items():
            if array is not None:
                address = array.ctypes.data
                binding.bind_output(name, "cpu", 0, array.dtype, array.shape, address)


def _num_rows(buffer: RowBuffer, shape: Shape) -> int:
    return shape.rows if buffer.per_row else shape.sentences


def _prefix(flat: Array, shape: tuple[int, ...]) -> Array:
    return flat[: math.prod(shape)].reshape(shape)
