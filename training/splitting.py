"""Subword regularisation: pieces fall apart at random, so words are seen in several spellings."""

from collections.abc import Mapping, Sequence

import numpy as np

_NO_HALVES = -1


class PieceSplitter:
    """Undoes BPE merges, in the spirit of BPE-dropout (Provilkov et al. 2020).

    Unlike sentencepiece's own sampling it draws from the generator that it is given, so an epoch
    can be made again in another process, and it needs no text: it works on the ids of a whole
    corpus at once. `ranks` are those of `training.vocabulary.merge_ranks`.
    """

    def __init__(self, ranks: Mapping[str, tuple[int, float]], vocabulary_size: int) -> None:
        self._halves = np.full((vocabulary_size, 2), _NO_HALVES)
        for piece, (id, _) in ranks.items():
            cuts = [(piece[:i], piece[i:]) for i in range(1, len(piece))]
            known = [(ranks[a], ranks[b]) for a, b in cuts if a in ranks and b in ranks]
            if known:
                # The merge that made a piece joined two older ones: of all pairs that spell it, the
                # one that was complete first.
                left, right = min(known, key=lambda pair: max(pair[0][1], pair[1][1]))
                self._halves[id] = left[0], right[0]

    def split(
        self, rows: Sequence[Sequence[int]], probability: float, random: np.random.Generator
    ) -> list[list[int]]:
        """Replace each id that has halves by them with `probability`. No row may be empty."""
        lengths = np.array([len(row) for row in rows])
        ids = np.concatenate([np.asarray(row) for row in rows])
        chosen = (random.random(len(ids)) < probability) & (self._halves[ids, 0] != _NO_HALVES)
        sizes = 1 + chosen
        result = np.repeat(ids, sizes)
        last = np.cumsum(sizes)[chosen] - 1
        result[last - 1], result[last] = self._halves[ids[chosen]].T
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        ends = np.cumsum(np.add.reduceat(sizes, starts))
        return [part.tolist() for part in np.split(result, ends[:-1])]
