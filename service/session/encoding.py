"""Encoding newcomers: which of them together, and with what to choose from."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from service.session.ancestry import Indices
from service.session.buffers import Array
from service.session.graphs import Graphs
from service.session.grouping import groups_by_length
from service.session.shortlist import LIST_IDS

_NO_WORDS: Final[Indices] = np.zeros(0, np.int64)


class Encoder:
    """The encoder graph of a bundle, and the lists that it is given."""

    def __init__(self, graphs: Graphs) -> None:
        self._session = graphs.encoder
        self._names = [output.name for output in graphs.encoder.get_outputs()]
        self._shortlists = graphs.shortlists

    def lists(
        self, sources: Sequence[Sequence[int]], is_listed: npt.NDArray[np.bool_]
    ) -> list[Indices]:
        """Of each source, its own words; none if it has no list."""
        lists = [_NO_WORDS] * len(sources)
        if self._shortlists:
            listed = np.flatnonzero(is_listed).tolist()
            drawn_up = self._shortlists.draw_up([sources[index] for index in listed])
            for index, ids in zip(listed, drawn_up, strict=True):
                lists[index] = ids
        return lists

    def encode(
        self, sources: Sequence[Sequence[int]], lists: Sequence[Indices]
    ) -> list[tuple[Indices, Mapping[str, Array]]]:
        """Groups of the sources, with a row for each of the group in the outputs by name.

        The lists, as the graph was given them, are among the outputs.
        """
        lengths = np.fromiter(map(len, sources), np.int64, len(sources))
        return [
            (group, self._run([sources[i] for i in group], [lists[i] for i in group]))
            for group in groups_by_length(lengths)
        ]

    def _run(
        self, sources: Sequence[Sequence[int]], lists: Sequence[Indices]
    ) -> Mapping[str, Array]:
        lengths = np.fromiter(map(len, sources), np.int64, len(sources))
        ids = np.zeros((len(sources), int(lengths.max())), np.int64)
        for row, source in zip(ids, sources, strict=True):
            row[: len(source)] = source
        feeds = {"source_ids": ids, "source_lengths": lengths}
        given = {LIST_IDS: self._shortlists.padded(lists)} if self._shortlists else {}
        outputs = self._session.run(self._names, feeds | given)
        return dict(zip(self._names, outputs, strict=True)) | given
