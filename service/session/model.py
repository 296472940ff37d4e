"""`OnnxModel`: the rows of one worker, encoded, stepped and moved by onnxruntime.

The step graph is bound to the buffers once for each shape (sentences, beams, extents, candidates)
and the binding is kept, since buffers never change their address: a step costs two small copies and
the run itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import onnxruntime

from service.bundle import TensorSpec
from service.decoding import StepOutput
from service.session.ancestry import Ancestry, Indices
from service.session.buffers import Array, Moves, RowBuffer
from service.session.graphs import Graphs

_SOURCE_MULTIPLE = 8
_FIRST_TARGET_EXTENT = 32
_MAX_CALLS = 1024
_CALL_COST = 8
"""Of one encoder call, in tokens that could be encoded in that time."""


@dataclass(frozen=True, slots=True)
class _Call:
    """The step graph bound to the live rows in one shape, with the arrays it reads and writes."""

    binding: onnxruntime.IOBinding
    tokens: npt.NDArray[np.int64]
    positions: npt.NDArray[np.int32]
    log_probs: npt.NDArray[np.float32]
    ids: npt.NDArray[np.int64]
    attention: npt.NDArray[np.float32] | None
    full_log_probs: npt.NDArray[np.float32] | None


class _Shape(NamedTuple):
    """Everything a binding depends on."""

    sentences: int
    beams: int
    source: int
    target: int
    swapped: bool
    candidates: int
    attention: bool
    full: bool


class OnnxModel:
    """A `StepModel` over a bundle's graphs, for one thread.

    `max_rows` bounds sentences x beams. What `step` returns is overwritten by the next `step`.
    """

    def __init__(self, graphs: Graphs, max_rows: int) -> None:
        manifest = graphs.manifest
        self.start_id = manifest.special_ids.decoder_start
        self.eos_id = manifest.special_ids.eos
        self._graphs = graphs
        self._attention = manifest.attention
        self._max_rows = max_rows
        self._vocabulary_size = manifest.vocabulary_size
        self._max_extents = {
            "source": _round_up(manifest.limits.max_source_tokens),
            "target": manifest.limits.max_target_tokens,
        }
        self._memory = [self._buffer(spec) for spec in manifest.memory]
        self._state = [self._buffer(spec) for spec in manifest.state]
        # A cache along the target is written in place. Any other state is still read while its next
        # value is written: two buffers that swap roles at every step.
        self._next = [
            buffer if "target" in buffer.axes else self._buffer(spec)
            for spec, buffer in zip(manifest.state, self._state, strict=True)
        ]
        self._swapped = False
        self._lengths = np.zeros(max_rows, np.int64)
        self._calls: dict[tuple[object, ...], _Call] = {}
        self._num_sentences, self._beam_size = 0, 1
        self._ancestry = Ancestry(max_rows, 1)
        self._extents = {"source": 0, "target": 0}

    def append(self, sources: Sequence[Sequence[int]], beam_size: int) -> None:
        """Encodes `sources` as one batch and puts their rows behind the live ones, all beams alike.

        If encoding fails, the live rows are as they were.
        """
        first, count = self._num_sentences, len(sources)
        assert (first + count) * beam_size <= self._max_rows
        assert first == 0 or beam_size == self._beam_size
        lengths = np.fromiter(map(len, sources), np.int64, count)
        encoded = [(group, self._encode(sources, group)) for group in _groups(lengths)]
        if first == 0:
            self._beam_size = beam_size
            self._ancestry = Ancestry(self._max_rows // beam_size, beam_size)
            self._fit("target", _FIRST_TARGET_EXTENT)
        self._ancestry.append(first, count)
        self._lengths[first : first + count] = lengths
        self._fit("source", _round_up(int(self._lengths[: first + count].max())))
        for group, outputs in encoded:
            self._write(first + group, outputs)
        self._num_sentences = first + count

    def step(
        self,
        tokens: npt.NDArray[np.int64],
        positions: npt.NDArray[np.int32],
        num_candidates: int,
        attention: bool,
        full: bool = False,
    ) -> StepOutput:
        """The best continuations of every live row.

        tokens (sentences, beams) are the last ones; positions (sentences * beams,) the number of
        tokens before each. Attention is (rows, source extent), zero behind each source's length.
        """
        if positions.max() >= self._extents["target"]:
            self._fit("target", 2 * self._extents["target"])
        call = self._call(min(num_candidates, self._vocabulary_size), attention, full)
        call.tokens[...] = tokens
        call.positions[...] = positions
        self._graphs.step.run_with_iobinding(call.binding)
        self._ancestry.step(positions)
        self._state, self._next = self._next, self._state
        self._swapped = not self._swapped
        weights = None if call.attention is None else self._mean_over_heads(call.attention)
        return StepOutput(call.log_probs, call.ids, weights, call.full_log_probs)

    def reorder(self, rows: npt.NDArray[np.int64]) -> None:
        """Row i continues what row `rows[i]` was; sentences past the end are dropped.

        rows (sentences * beams,): the beams of a new sentence all come from one old sentence.
        """
        beam_size = self._beam_size
        moves, copies = Moves.of(rows), self._ancestry.reorder(rows)
        for state in self._state:
            if "target" in state.axes:
                state.copy(copies)
            else:
                state.move(moves)
        moves = Moves.of(rows[::beam_size] // beam_size)
        for memory in self._memory:
            memory.move(moves)
        self._lengths[moves.to] = self._lengths[moves.origin]
        self._num_sentences = len(rows) // beam_size

    def _buffer(self, spec: TensorSpec) -> RowBuffer:
        return RowBuffer(spec, self._max_rows, self._max_extents)

    def _num_rows(self, buffer: RowBuffer) -> int:
        return self._num_sentences * (self._beam_size if buffer.per_row else 1)

    def _encode(self, sources: Sequence[Sequence[int]], group: Indices) -> dict[str, Array]:
        """The encoder's outputs by name, a row for each of `sources[group]`."""
        chosen = [sources[index] for index in group]
        lengths = np.fromiter(map(len, chosen), np.int64, len(chosen))
        ids = np.zeros((len(chosen), int(lengths.max())), np.int64)
        for row, source in zip(ids, chosen, strict=True):
            row[: len(source)] = source
        encoder = self._graphs.encoder
        names = [output.name for output in encoder.get_outputs()]
        outputs = encoder.run(names, {"source_ids": ids, "source_lengths": lengths})
        return dict(zip(names, outputs, strict=True))

    def _write(self, sentences: Indices, outputs: Mapping[str, Array]) -> None:
        """Puts encoder outputs into the rows of `sentences`, once for every beam of a state."""
        for buffer in self._memory + self._state:
            if buffer.name in outputs:
                values, to = outputs[buffer.name], sentences
                if buffer.per_row:
                    values = np.repeat(values, self._beam_size, axis=0)
                    beams = np.arange(self._beam_size)
                    to = (sentences[:, None] * self._beam_size + beams).ravel()
                buffer.write(to, values)

    def _fit(self, axis_name: str, extent: int) -> None:
        """Lays the live rows out for `extent` places along the source or the target."""
        extent = min(extent, self._max_extents[axis_name])
        if extent == self._extents[axis_name]:
            return
        self._extents[axis_name] = extent
        for buffer in {*self._memory, *self._state, *self._next}:
            if axis_name in buffer.axes:
                buffer.resize(axis_name, extent, self._num_rows(buffer))

    def _call(self, num_candidates: int, attention: bool, full: bool) -> _Call:
        shape = _Shape(
            self._num_sentences,
            self._beam_size,
            self._extents["source"],
            self._extents["target"],
            self._swapped,
            num_candidates,
            attention,
            full,
        )
        call = self._calls.get(shape)
        if call is None:
            if len(self._calls) >= _MAX_CALLS:
                self._calls.clear()
            call = self._calls[shape] = self._bind(shape)
        return call

    def _bind(self, shape: _Shape) -> _Call:
        rows = shape.sentences * shape.beams
        heads = self._attention.num_layers * self._attention.num_heads
        call = _Call(
            onnxruntime.IOBinding(self._graphs.step),
            np.zeros((shape.sentences, shape.beams), np.int64),
            np.zeros(rows, np.int32),
            np.zeros((rows, shape.candidates), np.float32),
            np.zeros((rows, shape.candidates), np.int64),
            np.zeros((rows, heads, shape.source), np.float32) if shape.attention else None,
            np.zeros((rows, self._vocabulary_size), np.float32) if shape.full else None,
        )
        bind_input = call.binding.bind_cpu_input
        bind_input("tokens", call.tokens)
        bind_input("positions", call.positions)
        bind_input("source_lengths", self._lengths[: shape.sentences])
        bind_input("num_candidates", np.array([shape.candidates]))
        for buffer in self._memory + self._state:
            call.binding.bind_input(buffer.name, *buffer.place(self._num_rows(buffer)))
        for buffer in self._next:
            place = buffer.place(self._num_rows(buffer))
            call.binding.bind_output(f"next_{buffer.name}", *place)
        outputs: dict[str, Array | None] = {
            "candidate_log_probs": call.log_probs,
            "candidate_ids": call.ids,
            "attention": call.attention,
            "log_probs": call.full_log_probs,
        }
        for name, array in outputs.items():
            if array is not None:
                address = array.ctypes.data
                call.binding.bind_output(name, "cpu", 0, array.dtype, array.shape, address)
        return call

    def _mean_over_heads(self, attention: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """(rows, layers * heads, source) -> (rows, source), of the layer the manifest names."""
        first = self._attention.layer * self._attention.num_heads
        heads = attention[:, first : first + self._attention.num_heads]
        mean: npt.NDArray[np.float32] = heads.mean(axis=1, dtype=np.float32)
        return mean


def _groups(lengths: Indices) -> list[Indices]:
    """Which sentences to encode together, so that padding and calls cost least in sum.

    The best cut of the sentences sorted by length, by dynamic programming: `best[i]` is the least
    cost of the first i, and `starts[i]` is where the last group of them begins.
    """
    order = np.argsort(-lengths, kind="stable")
    longest = lengths[order].tolist()
    best, starts = [0], [0]
    for end in range(1, len(longest) + 1):
        cost, start = min(
            (best[start] + _CALL_COST + (end - start) * longest[start], start)
            for start in range(end)
        )
        best.append(cost)
        starts.append(start)
    groups, end = [], len(longest)
    while end:
        groups.append(order[starts[end] : end])
        end = starts[end]
    return groups


def _round_up(length: int) -> int:
    return -(-length // _SOURCE_MULTIPLE) * _SOURCE_MULTIPLE
