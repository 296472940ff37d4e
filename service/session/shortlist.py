"""The target pieces that each sentence chooses from.

    every sentence     common pieces: frequent words, punctuation, digits, EOS
    and by itself      the likeliest translations of each of its pieces, and the pieces themselves

A list depends on its sentence alone, so that what a sentence becomes does not depend on its
neighbours (Jean et al. 2015, section 3.2 has one list for all that is translated together).
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from service.bundle import Lexicon, TensorSpec
from service.session.ancestry import Indices

LIST_IDS = "shortlist_ids"
"""The encoder's input: (sentence, shortlist) int64, what is on each list."""

_MAX_WORDS = 96
_MIN_WORDS_PER_PIECE = 6
"""Of a sentence so long that a fair share of `_MAX_WORDS` would be less."""

SHORTLIST_MULTIPLE = 32
"""Lists are padded to multiples of it: few lengths, and rows that mostly need no other padding."""


class Shortlists:
    """Draws up lists. What is padding has the id `padding`, which is no piece."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.padding = lexicon.vocabulary_size
        self.common: Indices = lexicon.common.astype(np.int64)
        counts: Indices = np.diff(lexicon.offsets).astype(np.int64)
        is_word = np.arange(max(1, counts.max(initial=0))) < counts[:, None]
        # (pieces, most candidates of any piece): one row, padded, for each source piece
        self._candidates: npt.NDArray[np.int32] = np.full(is_word.shape, self.padding, np.int32)
        self._candidates[is_word] = lexicon.words

    @property
    def ids_spec(self) -> TensorSpec:
        """The lists of the live sentences."""
        return TensorSpec(LIST_IDS, ("sentence", "shortlist"), "int64", padding=self.padding)

    def max_length(self, max_source_tokens: int) -> int:
        """No list of a source of so many tokens is longer."""
        return max(_MAX_WORDS, _MIN_WORDS_PER_PIECE * max_source_tokens)

    def draw_up(self, sources: Sequence[Sequence[int]]) -> list[Indices]:
        """The ids of each source's own list, ascending, without the common ones."""
        return [*map(self._draw_up, sources)]

    def _draw_up(self, source: Sequence[int]) -> Indices:
        share = max(_MAX_WORDS // max(len(source), 1), _MIN_WORDS_PER_PIECE)
        words = np.sort(self._candidates.take(source, axis=0)[:, :share], axis=None)
        is_first = words != self.padding
        is_first[1:] &= words[1:] != words[:-1]
        ids: Indices = words[is_first].astype(np.int64)
        return ids

    def padded(self, lists: Sequence[Indices]) -> Indices:
        """(lists, length of the longest or more), at least one word wide."""
        longest = max(1, *map(len, lists))
        table = np.full((len(lists), round_up(longest, SHORTLIST_MULTIPLE)), self.padding)
        for row, ids in zip(table, lists, strict=True):
            row[: len(ids)] = ids
        return table

    def ids_at(
        self, places: npt.NDArray[np.int64], lists: Indices, beam_size: int
    ) -> npt.NDArray[np.int64]:
        """What stands at `places` (rows, k): first the common ones, then the sentence's own list.

        lists (sentences, length) is padded, and `beam_size` rows share a list.
        """
        num_common = len(self.common)
        ids: npt.NDArray[np.int64] = self.common.take(places, mode="clip")
        own = (places >= num_common).nonzero()
        if len(own[0]):
            ids[own] = lists[own[0] // beam_size, places[own] - num_common]
        return ids


def round_up(length: int, multiple: int) -> int:
    return -(-length // multiple) * multiple
