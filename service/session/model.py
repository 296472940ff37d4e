"""`OnnxModel`: the rows of one worker, encoded, stepped and moved by onnxruntime."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from service.bundle import TensorSpec
from service.decoding import StepOutput
from service.session.ancestry import Ancestry, Indices
from service.session.buffers import Array, HostRowBuffer, Moves, RowBuffer
from service.session.calls import Calls, Shape
from service.session.encoding import Encoder
from service.session.graphs import Graphs
from service.session.shortlist import SHORTLIST_MULTIPLE, round_up

# Extents in few sizes, so that bindings are used again.
_SOURCE_MULTIPLE = 8
_FIRST_TARGET_EXTENT = 32


class _Asked(NamedTuple):
    """The arguments of a step."""

    tokens: npt.NDArray[np.int64]
    positions: npt.NDArray[np.int32]
    num_candidates: int
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
        self._encoder = Encoder(graphs)
        self._max_rows = max_rows
        self._shortlists = graphs.shortlists
        # Of the graph's heads, those of the layer that the manifest names.
        first = manifest.attention.layer * manifest.attention.num_heads
        self._heads = slice(first, first + manifest.attention.num_heads)
        self._max_extents = _max_extents(graphs)
        self._extents = dict.fromkeys(self._max_extents, 0)
        self._num_sentences, self._beam_size = 0, 1
        self._ancestry = Ancestry(max_rows, 1)
        # Of each sentence: its length, whether it chooses from a list, the length of that, and the
        # places along the target that are in use.
        self._facts = np.zeros((4, max_rows), np.int64)
        self._lengths, self._is_listed, self._list_lengths, self._used = self._facts
        self._num_listed = 0
        self._calls = Calls(graphs, max_rows, self._max_extents["source"], self._lengths)
        self._memory = [self._buffer(spec) for spec in manifest.memory]
        self._lists: HostRowBuffer | None = None
        if self._shortlists:
            self._memory += [self._buffer(spec) for spec in manifest.shortlist]
            ids = self._shortlists.ids_spec
            self._lists = HostRowBuffer(ids, max_rows, self._max_extents)  # no graph reads them
        self._of_sentences: list[RowBuffer] = [*self._memory, *filter(None, [self._lists])]
        self._state = [self._buffer(spec) for spec in manifest.state]
        # A cache along the target is written in place. Any other state is still read while its next
        # value is written: two buffers that swap roles at every step.
        self._next = [
            buffer if "target" in buffer.axes else self._buffer(spec)
            for spec, buffer in zip(manifest.state, self._state, strict=True)
        ]
        self._buffers = {*self._of_sentences, *self._state, *self._next}
        self._swaps, self._swapped = self._state != self._next, False
        self._last_step: _Asked

    def append(
        self,
        sources: Sequence[Sequence[int]],
        beam_size: int,
        shortlist: Sequence[bool] | None = None,
    ) -> None:
        """Encodes `sources` and puts their rows behind the live ones, all beams alike.

        If encoding fails, the live rows are as they were.
        """
        first, count = self._num_sentences, len(sources)
        assert (first + count) * beam_size <= self._max_rows
        assert first == 0 or beam_size == self._beam_size
        is_listed = np.array(shortlist if shortlist and self._shortlists else [False] * count)
        lists = self._encoder.lists(sources, is_listed)
        groups = self._encoder.encode(sources, lists)
        if first == 0:
            self._begin(beam_size)
        self._ancestry.append(first, count)
        self._facts[:, first : first + count] = (
            [len(source) for source in sources],
            is_listed,
            [len(ids) for ids in lists],
            [0] * count,
        )
        longest_source, _, longest_list, _ = self._facts[:, : first + count].max(axis=1).tolist()
        self._fit("source", round_up(longest_source, _SOURCE_MULTIPLE))
        if self._shortlists:
            self._fit("shortlist", round_up(max(1, longest_list), SHORTLIST_MULTIPLE))
        for group, outputs in groups:
            self._write(first + group, outputs)
        self._set_size(first + count)

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
        tokens before each. Attention is (rows, heads, source extent), zero behind each source's
        length.
        """
        last, extent = int(positions.max()), self._extents["target"]
        if last >= extent:
            self._fit("target", max(2 * extent, last + 1))
        self._last_step = _Asked(tokens, positions, num_candidates, attention, full)
        output = self._choose(self._last_step)
        self._used[: self._num_sentences] = positions[:: self._beam_size] + 1
        self._swap()
        return output

    def more(self, num_candidates: int) -> StepOutput:
        """The last step again, which read what is still there, with more candidates."""
        self._swap()
        try:
            return self._choose(self._last_step._replace(num_candidates=num_candidates))
        finally:
            self._swap()

    def reorder(self, rows: npt.NDArray[np.int64]) -> None:
        """Row i continues what row `rows[i]` was; sentences past the end are dropped.

        rows (sentences * beams,): the beams of a new sentence all come from one old sentence.
        """
        moves = Moves.of(rows)
        if len(moves.to):
            self._move_state(rows, moves)
            self._move_sentences(Moves.of(rows[:: self._beam_size] // self._beam_size))
        self._set_size(len(rows) // self._beam_size)

    def _begin(self, beam_size: int) -> None:
        """Makes ready for the first rows."""
        if beam_size != self._beam_size:
            self._beam_size = beam_size
            self._ancestry = Ancestry(self._max_rows // beam_size, beam_size)
        self._fit("target", _FIRST_TARGET_EXTENT)

    def _set_size(self, num_sentences: int) -> None:
        self._num_sentences = num_sentences
        self._num_listed = int(np.count_nonzero(self._is_listed[:num_sentences]))

    def _swap(self) -> None:
        """Lets what was written be read next."""
        if self._swaps:
            self._state, self._next = self._next, self._state
            self._swapped = not self._swapped

    def _move_state(self, rows: npt.NDArray[np.int64], moves: Moves) -> None:
        caches = [state for state in self._state if "target" in state.axes]
        for state in self._state:
            if state not in caches:
                state.move(moves)
        if self._beam_size == 1:
            for cache in caches:
                cache.move_up_to(moves, self._used[moves.origin])
        elif caches:
            copies = self._ancestry.reorder(rows, self._used[: self._num_sentences])
            cells = {layout: copies.cells(*layout) for layout in {each.layout for each in caches}}
            for cache in caches:
                cache.copy(*cells[cache.layout])

    def _move_sentences(self, moves: Moves) -> None:
        if len(moves.to):
            for memory in self._of_sentences:
                memory.move(moves)
            self._facts[:, moves.to] = self._facts[:, moves.origin]

    def _buffer(self, spec: TensorSpec) -> RowBuffer:
        return self._graphs.placement.buffer(spec, self._max_rows, self._max_extents)

    def _choose(self, asked: _Asked) -> StepOutput:
        """Each sentence's candidates: from its list, or from the whole vocabulary.

        A step changes nothing that it reads, so that sentences of both kinds can live together:
        they take two.
        """
        if not self._num_listed:
            return self._run(asked)
        if self._num_listed == self._num_sentences and not asked.full:
            return self._run(asked, listed=True)
        whole = self._run(asked)
        whole = replace(whole, log_probs=whole.log_probs.copy(), ids=whole.ids.copy())
        rows = self._is_listed[: self._num_sentences].astype(np.bool_).repeat(self._beam_size)
        listed = self._run(asked._replace(full=False), listed=True)
        width = listed.ids.shape[1]  # a list may hold fewer words than candidates were asked for
        whole.log_probs[rows], whole.ids[rows] = -np.inf, self.start_id
        whole.log_probs[rows, :width], whole.ids[rows, :width] = (
            listed.log_probs[rows],
            listed.ids[rows],
        )
        return whole

    def _run(self, asked: _Asked, *, listed: bool = False) -> StepOutput:
        shape = self._shape(asked, listed)
        call = self._calls.call(shape, self._memory + self._state, self._next)
        call.tokens[:] = asked.tokens
        call.positions[:] = asked.positions
        for name, array in call.sent:
            # A copy, as it is on any device but the CPU.
            call.binding.bind_cpu_input(name, array.copy())
        self._graphs.step.run_with_iobinding(call.binding)
        ids = call.ids
        if listed:
            assert self._shortlists is not None and self._lists is not None
            lists = self._lists.read(shape.sentences)
            ids = self._shortlists.ids_at(call.ids, lists, shape.beams)
            self._rule_out_padding(call.log_probs, ids)
        weights = None if call.attention is None else call.attention[:, self._heads]
        return StepOutput(call.log_probs, ids, weights, call.full_log_probs)

    def _shape(self, asked: _Asked, listed: bool) -> Shape:
        num_places = self._graphs.manifest.vocabulary_size  # to choose from
        if listed:
            assert self._shortlists is not None
            num_places = len(self._shortlists.common) + self._extents["shortlist"]
        return Shape(
            sentences=self._num_sentences,
            beams=self._beam_size,
            source=self._extents["source"],
            target=self._extents["target"],
            shortlist=self._extents.get("shortlist", 0),
            candidates=min(asked.num_candidates, num_places),
            attention=asked.attention,
            full=asked.full,
            listed=listed,
            swapped=self._swapped,
        )

    def _rule_out_padding(self, log_probs: Array, ids: Indices) -> None:
        """What is no word, which comes last, can't follow, whatever stands in for it."""
        assert self._shortlists is not None
        padding = self._shortlists.padding
        if ids.shape[1] > len(self._shortlists.common) and (ids == padding).any():
            log_probs[ids == padding] = -np.inf
            ids[ids == padding] = self.start_id

    def _write(self, sentences: Indices, outputs: Mapping[str, Array]) -> None:
        """Puts encoder outputs into the rows of `sentences`, once for every beam of a state."""
        for buffer in (*self._of_sentences, *self._state):
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
        for buffer in self._buffers:
            if axis_name in buffer.axes:
                num_rows = self._num_sentences * (self._beam_size if buffer.per_row else 1)
                buffer.resize(axis_name, extent, num_rows)


def _max_extents(graphs: Graphs) -> dict[str, int]:
    limits = graphs.manifest.limits
    extents = {
        "source": round_up(limits.max_source_tokens, _SOURCE_MULTIPLE),
        "target": limits.max_target_tokens,
    }
    if graphs.shortlists:
        longest = graphs.shortlists.max_length(limits.max_source_tokens)
        extents["shortlist"] = round_up(longest, SHORTLIST_MULTIPLE)
    return extents
