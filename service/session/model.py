"""`OnnxModel`: the rows of one worker, encoded, stepped and moved by onnxruntime."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from service.bundle import TensorSpec
from service.decoding import StepOutput
from service.session.ancestry import Ancestry, Indices
from service.session.buffers import Array, Moves, RowBuffer
from service.session.calls import Calls, Shape
from service.session.graphs import Graphs
from service.session.grouping import groups_by_length
from service.session.shortlist import LIST_IDS

# Extents in few sizes, so that bindings are used again.
_SOURCE_MULTIPLE = 8
_SHORTLIST_MULTIPLE = 32
_FIRST_TARGET_EXTENT = 32


class OnnxModel:
    """A `StepModel` over a bundle's graphs, for one thread.

    `max_rows` bounds sentences x beams. What `step` returns is overwritten by the next `step`.
    """

    def __init__(self, graphs: Graphs, max_rows: int) -> None:
        manifest = graphs.manifest
        self.start_id = manifest.special_ids.decoder_start
        self.eos_id = manifest.special_ids.eos
        self._graphs = graphs
        self._max_rows = max_rows
        self._shortlists = graphs.shortlists
        # Of the graph's heads, those of the layer that the manifest names.
        first = manifest.attention.layer * manifest.attention.num_heads
        self._heads = slice(first, first + manifest.attention.num_heads)
        self._max_extents = _max_extents(graphs)
        self._extents = dict.fromkeys(self._max_extents, 0)
        self._num_sentences, self._beam_size = 0, 1
        self._ancestry = Ancestry(max_rows, 1)
        self._lengths = np.zeros(max_rows, np.int64)
        # Whether a sentence chooses from a list, and the length of what is its own on it.
        self._is_listed = np.zeros(max_rows, np.bool_)
        self._list_lengths = np.zeros(max_rows, np.int64)
        self._calls = Calls(graphs, max_rows, self._max_extents["source"], self._lengths)
        self._memory = [self._buffer(spec) for spec in manifest.memory]
        self._lists: RowBuffer | None = None
        if self._shortlists:
            self._memory += [self._buffer(spec) for spec in manifest.shortlist]
            self._lists = self._buffer(self._shortlists.ids_spec)
        self._state = [self._buffer(spec) for spec in manifest.state]
        # A cache along the target is written in place. Any other state is still read while its next
        # value is written: two buffers that swap roles at every step.
        self._next = [
            buffer if "target" in buffer.axes else self._buffer(spec)
            for spec, buffer in zip(manifest.state, self._state, strict=True)
        ]
        self._swapped = False
        self._last_step: tuple[Shape, npt.NDArray[np.int64], npt.NDArray[np.int32]]

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
        lengths = np.fromiter(map(len, sources), np.int64, count)
        is_listed = np.array(shortlist or [False] * count)
        lists = self._draw_up_lists(sources, is_listed)
        groups = groups_by_length(lengths)
        encoded = [(group, self._encode(sources, lists, group)) for group in groups]
        if first == 0:
            self._beam_size = beam_size
            self._ancestry = Ancestry(self._max_rows // beam_size, beam_size)
            self._fit("target", _FIRST_TARGET_EXTENT)
        self._ancestry.append(first, count)
        self._lengths[first : first + count] = lengths
        self._is_listed[first : first + count] = is_listed
        self._list_lengths[first : first + count] = [len(ids) for ids in lists]
        longest = int(self._lengths[: first + count].max())
        self._fit("source", _round_up(longest, _SOURCE_MULTIPLE))
        if self._shortlists:
            longest = max(1, int(self._list_lengths[: first + count].max()))
            self._fit("shortlist", _round_up(longest, _SHORTLIST_MULTIPLE))
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
        tokens before each. Attention is (rows, heads, source extent), zero behind each source's
        length.
        """
        if positions.max() >= self._extents["target"]:
            self._fit("target", max(2 * self._extents["target"], int(positions.max()) + 1))
        shape = Shape(
            sentences=self._num_sentences,
            beams=self._beam_size,
            source=self._extents["source"],
            target=self._extents["target"],
            shortlist=self._extents.get("shortlist", 0),
            candidates=min(num_candidates, self._graphs.manifest.vocabulary_size),
            attention=attention,
            full=full,
            listed=False,
            swapped=self._swapped,
        )
        output = self._choose(shape, tokens, positions)
        self._last_step = shape, tokens, positions
        self._ancestry.step(positions)
        self._state, self._next = self._next, self._state
        # Where every state is written in place there is only one arrangement to bind.
        self._swapped ^= self._state != self._next
        return output

    def more(self, num_candidates: int) -> StepOutput:
        """The last step again, which read what is still there, with more candidates."""
        shape, tokens, positions = self._last_step
        size = self._graphs.manifest.vocabulary_size
        self._state, self._next = self._next, self._state
        try:
            more = shape._replace(candidates=min(num_candidates, size))
            return self._choose(more, tokens, positions)
        finally:
            self._state, self._next = self._next, self._state

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
        if self._lists:
            self._lists.move(moves)
        for of_sentence in (self._lengths, self._is_listed, self._list_lengths):
            of_sentence[moves.to] = of_sentence[moves.origin]
        self._num_sentences = len(rows) // beam_size

    def _buffer(self, spec: TensorSpec) -> RowBuffer:
        return RowBuffer(spec, self._max_rows, self._max_extents)

    def _draw_up_lists(
        self, sources: Sequence[Sequence[int]], is_listed: npt.NDArray[np.bool_]
    ) -> list[Indices]:
        """Of each source, its own words; none if it has no list."""
        lists = [np.zeros(0, np.int64)] * len(sources)
        listed = np.flatnonzero(is_listed).tolist()
        if self._shortlists and listed:
            drawn_up = self._shortlists.draw_up([sources[index] for index in listed])
            for index, ids in zip(listed, drawn_up, strict=True):
                lists[index] = ids
        return lists

    def _choose(
        self, shape: Shape, tokens: npt.NDArray[np.int64], positions: npt.NDArray[np.int32]
    ) -> StepOutput:
        """Each sentence's candidates: from its list, or from the whole vocabulary.

        A step changes nothing that it reads, so that sentences of both kinds can live together:
        they take two.
        """
        is_listed = self._is_listed[: shape.sentences]
        if self._shortlists is None or not is_listed.any():
            return self._run(shape, tokens, positions)
        if is_listed.all() and not shape.full:
            return self._run(shape._replace(listed=True), tokens, positions)
        whole = self._run(shape, tokens, positions)
        whole = replace(whole, log_probs=whole.log_probs.copy(), ids=whole.ids.copy())
        rows = np.repeat(is_listed, shape.beams)
        listed = self._run(shape._replace(listed=True, full=False), tokens, positions)
        width = listed.ids.shape[1]  # a list may hold fewer words than candidates were asked for
        whole.log_probs[rows], whole.ids[rows] = -np.inf, self.start_id
        whole.log_probs[rows, :width], whole.ids[rows, :width] = (
            listed.log_probs[rows],
            listed.ids[rows],
        )
        return whole

    def _run(
        self, shape: Shape, tokens: npt.NDArray[np.int64], positions: npt.NDArray[np.int32]
    ) -> StepOutput:
        if shape.listed:
            shape = self._within_lists(shape)
        call = self._calls.call(shape, self._memory + self._state, self._next)
        call.tokens[...] = tokens
        call.positions[...] = positions
        self._graphs.step.run_with_iobinding(call.binding)
        ids = call.ids
        if shape.listed:
            assert self._shortlists is not None and self._lists is not None
            lists = self._lists.read(shape.sentences)
            ids = self._shortlists.ids_at(call.ids, lists, shape.beams)
            self._rule_out_padding(call.log_probs, ids)
        weights = None if call.attention is None else call.attention[:, self._heads]
        return StepOutput(call.log_probs, ids, weights, call.full_log_probs)

    def _within_lists(self, shape: Shape) -> Shape:
        """The shape with no more candidates than there are places on a list."""
        assert self._shortlists is not None
        places = len(self._shortlists.common) + shape.shortlist
        return shape._replace(candidates=min(shape.candidates, places))

    def _rule_out_padding(self, log_probs: Array, ids: Indices) -> None:
        """What is no word, which comes last, can't follow, whatever stands in for it."""
        assert self._shortlists is not None
        padding = self._shortlists.padding
        if ids.shape[1] > len(self._shortlists.common) and (ids == padding).any():
            log_probs[ids == padding] = -np.inf
            ids[ids == padding] = self.start_id

    def _encode(
        self, sources: Sequence[Sequence[int]], lists: Sequence[Indices], group: Indices
    ) -> dict[str, Array]:
        """The encoder's outputs by name, a row for each of `sources[group]`."""
        chosen = [sources[index] for index in group]
        lengths = np.fromiter(map(len, chosen), np.int64, len(chosen))
        ids = np.zeros((len(chosen), int(lengths.max())), np.int64)
        for row, source in zip(ids, chosen, strict=True):
            row[: len(source)] = source
        encoder = self._graphs.encoder
        names = [output.name for output in encoder.get_outputs()]
        feeds = {"source_ids": ids, "source_lengths": lengths}
        if self._shortlists:
            feeds[LIST_IDS] = self._shortlists.padded([lists[index] for index in group])
        outputs = dict(zip(names, encoder.run(names, feeds), strict=True))
        return outputs | {name: feeds[name] for name in (LIST_IDS,) if name in feeds}

    def _write(self, sentences: Indices, outputs: Mapping[str, Array]) -> None:
        """Puts encoder outputs into the rows of `sentences`, once for every beam of a state."""
        for buffer in (*self._memory, *self._state, *filter(None, [self._lists])):
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
        for buffer in {*self._memory, *self._state, *self._next, *filter(None, [self._lists])}:
            if axis_name in buffer.axes:
                num_rows = self._num_sentences * (self._beam_size if buffer.per_row else 1)
                buffer.resize(axis_name, extent, num_rows)


def _max_extents(graphs: Graphs) -> dict[str, int]:
    limits = graphs.manifest.limits
    extents = {
        "source": _round_up(limits.max_source_tokens, _SOURCE_MULTIPLE),
        "target": limits.max_target_tokens,
    }
    if graphs.shortlists:
        longest = graphs.shortlists.max_length(limits.max_source_tokens)
        extents["shortlist"] = _round_up(longest, _SHORTLIST_MULTIPLE)
    return extents


def _round_up(length: int, multiple: int) -> int:
    return -(-length // multiple) * multiple
