"""Where things go in a translation, from where the model looked when it wrote each word.

Two rules, for any weights at all:

* What has a place but no words goes where the fewest links would cross it: from words behind it to
  the source before it, and the other way round.
* An element goes around the run of words with the most weight on its content, less that on the
  rest; inside its parent, and beside its siblings.
"""

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from service.text.protect.tree import Node
from service.text.rewriting import Span

Weights = NDArray[np.float64]
# Where links say nothing, the same fraction of the way is as good as any place.
_TIE = 1e-6
# A weight that may be noise.
_FAINT = 0.1


class Links:
    """The weights of words of a translation (rows) on tokens of the source (columns).

    Tokens that stand for no text (the end of the sentence) link to nothing.
    """

    def __init__(self, weights: Weights, source: Sequence[Span]) -> None:
        visible = [index for index, (start, end) in enumerate(source) if start < end]
        self._starts = [source[index][0] for index in visible]
        sums = np.cumsum(weights[:, visible], axis=1)
        self._sums = np.concatenate([np.zeros((len(weights), 1)), sums], axis=1)

    def __len__(self) -> int:
        """The number of words."""
        return len(self._sums)

    def before(self, position: int) -> Weights:
        """Return each word's weight on the tokens that begin before a position of the source."""
        return self._sums[:, bisect_left(self._starts, position)]

    def inside(self, span: Span) -> Weights:
        return self.before(span[1]) - self.before(span[0])

    def outside(self, span: Span) -> Weights:
        return self._sums[:, -1] - self.inside(span)

    def gap(self, span: Span, allowed: Sequence[int]) -> int:
        """Return which gap of the `allowed` ones is that of `span`; gap 0 is before all words."""
        after = self._sums[:, -1] - self.before(span[1])
        crossing = np.concatenate([[0.0], np.cumsum(after - self.before(span[0]))])
        gaps = np.asarray(allowed)
        share = bisect_left(self._starts, span[0]) / max(1, len(self._starts))
        detour = np.abs(gaps / max(1, len(self)) - share)
        return int(gaps[np.argmin(crossing[gaps] + _TIE * detour)])


def place(root: Node, links: Links) -> None:
    """Set the `place` of every node of a tree, and order the children of each by it."""
    root.place = 0, len(links)
    for node, is_left in root.walk():
        if not is_left and node.children:
            _Room(node, links).place_children()


class _Room:
    """The inside of one element: gaps are numbered like the words behind them."""

    def __init__(self, parent: Node, links: Links) -> None:
        self._parent, self._links = parent, links
        self._first, self._last = parent.place
        self._is_taken = [False] * len(links)  # by word
        self._is_wall = [False] * (len(links) + 1)  # by gap: no element may go across

    def place_children(self) -> None:
        begun, endless, points, elements = [], [], [], []
        for child in self._parent.children:
            if child.is_point:
                points.append(child)
            elif child.opening is None:
                begun.append(child)  # at most one
            elif child.closing is None:
                endless.append(child)  # at most one
            else:
                elements.append(child)
        for child in begun:
            child.place = self._first, self._last - int(np.argmax(self._sums(child)[::-1]))
            self._first = child.place[1]
        for child in endless:
            child.place = self._first + int(np.argmin(self._sums(child))), self._last
            self._last = child.place[0]
        for child in elements:
            self._set(child, self._best_run(child) or self._gap(child))
        for child in points:
            child.place = self._gap(child)
        inner = sorted(elements + points, key=lambda child: (child.place, child.content))
        self._parent.children = [*begun, *inner, *endless]

    def _scores(self, child: Node) -> Weights:
        scores = self._links.inside(child.content) - self._links.outside(child.content)
        return scores[self._first : self._last]

    def _sums(self, child: Node) -> Weights:
        """Return for each gap of the room the score of all words before it."""
        return np.concatenate([[0.0], np.cumsum(self._scores(child))])

    def _best_run(self, child: Node) -> Span | None:
        """Return the words in a row with the highest score (Kadane), if any looks here."""
        best: tuple[float, Span] | None = None
        looks = self._links.inside(child.content)
        start, total = self._first, 0.0
        for word, score in enumerate(self._scores(child).tolist(), start=self._first):
            if self._is_taken[word]:
                start, total = word + 1, 0.0
                continue
            if total <= 0.0 or self._is_wall[word]:
                start, total = word, 0.0
            total += score
            if looks[word] > _FAINT and (best is None or total > best[0]):
                best = total, (start, word + 1)
        return best and best[1]

    def _gap(self, child: Node) -> Span:
        gaps = range(self._first, self._last + 1)
        gap = self._links.gap(child.content, [gap for gap in gaps if self._is_open(gap)])
        return gap, gap

    def _is_open(self, gap: int) -> bool:
        """Whether no child goes across a gap."""
        if gap in (self._first, self._last) or self._is_wall[gap]:
            return True
        return not (self._is_taken[gap - 1] and self._is_taken[gap])

    def _set(self, child: Node, place: Span) -> None:
        child.place = start, end = place
        self._is_taken[start:end] = [True] * (end - start)
        self._is_wall[start] = self._is_wall[end] = True
