"""Which word comes from which: hard word alignments, read off a matrix of attention.

Pure functions of texts, spans (half open, in code points) and weights. A word is what the model's
tokens can tell apart: tokens that share a word make one, and so do words that share a token.

    attention        ▁Je   ▁su  is   ▁fat  igué   .
    I              [ .8    .1   .1   .0    .0    .0 ]       source words   I  am  tired  .
    am               .1    .6   .8   .1    .0    .0         target words   Je  suis  fatigué  .
    tired            .0    .2   .1   .9    .9    .1         Pharaoh        0-0 1-1 2-2 3-3
    .                .0    .0   .0   .0    .1    .8
    </s>             .1    .1   .0   .0    .0    .1
"""

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from service.text.rewriting import Span
from service.text.words import words

_NO_WORD = -1
_START, _END = itemgetter(0), itemgetter(1)


@dataclass(frozen=True, slots=True)
class Alignment:
    """Words that come from each other.

    source_words, target_words: their spans, in order, where a token stands for them.
    pairs: (source word, target word), counted from 0, by target word; each has one or none.
    """

    source_words: tuple[Span, ...]
    target_words: tuple[Span, ...]
    pairs: tuple[tuple[int, int], ...]

    @property
    def pharaoh(self) -> str:
        """The pairs as `0-0 1-2`, source first, as fast_align and Moses write them."""
        return " ".join(f"{source}-{target}" for source, target in self.pairs)

    def moved(self, source: int, target: int) -> "Alignment":
        """The same where both texts begin so many characters later."""
        return Alignment(
            tuple((start + source, end + source) for start, end in self.source_words),
            tuple((start + target, end + target) for start, end in self.target_words),
            self.pairs,
        )


def align(
    source_text: str,
    source_tokens: Sequence[Span],
    target_text: str,
    target_tokens: Sequence[Span],
    weights: NDArray[np.floating],
) -> Alignment:
    """Align each word of the target with the source word that belongs to it most.

    weights (target_tokens, source_tokens): what source tokens of a word get is added, and the mean
    taken over the target tokens of a word (as in Garg et al. 2019). A pair is worth the product of
    two shares: of all that the target word looks at, and of all looks that the source word gets. So
    a source word that everybody looks at a little takes nobody from the one he looks at most.
    What looks most at tokens that stand for no text, as the end of the sentence, has no pair.
    Weights that are no number count as zero.
    """
    source_words, source_owners = _grouped(source_text, source_tokens)
    target_words, target_owners = _grouped(target_text, target_tokens)
    looks = np.nan_to_num(weights) @ _membership(source_owners, len(source_words))
    looks = (_membership(target_owners, len(target_words)).T @ looks)[:-1]
    worth = _share(looks, axis=1) * _share(looks, axis=0)
    pairs = tuple(
        (int(row[:-1].argmax()), target)
        for target, row in enumerate(worth)
        if row[:-1].max(initial=0) > row[-1]
    )
    return Alignment(tuple(source_words), tuple(target_words), pairs)


def _share(looks: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """Of the sum over an axis; zero where that is."""
    total = looks.sum(axis, keepdims=True)
    return looks / np.where(total > 0, total, 1.0)


def _membership(owners: Sequence[int], num_words: int) -> NDArray[np.float64]:
    """(tokens, words + 1): 1 for the word that a token belongs to; the last is no word."""
    member = np.zeros((len(owners), num_words + 1))
    member[np.arange(len(owners)), owners] = 1
    return member


def _grouped(text: str, tokens: Sequence[Span]) -> tuple[list[Span], list[int]]:
    """The words that tokens stand for, and the word of each token, `_NO_WORD` if it has none."""
    parts = words(text)
    touched = [_overlapping(parts, token) for token in tokens]
    together = {index for part in touched for index in part[1:]}  # with the one before
    numbers = list(itertools.accumulate(index not in together for index in range(len(parts))))
    used = _numbered(numbers[part[0]] for part in touched if part)
    spans = dict[int, Span]()
    for number, (start, end) in zip(numbers, parts, strict=True):
        if number in used:
            spans[used[number]] = spans.get(used[number], (start, end))[0], end
    owners = [used[numbers[part[0]]] if part else _NO_WORD for part in touched]
    return [spans[word] for word in range(len(used))], owners


def _overlapping(parts: Sequence[Span], token: Span) -> range:
    """The indices of the words that a token is in."""
    start, end = token
    if start == end:
        return range(0)
    return range(bisect_right(parts, start, key=_END), bisect_left(parts, end, key=_START))


def _numbered(items: Iterable[int]) -> dict[int, int]:
    """The place of each among all, in order."""
    return {item: place for place, item in enumerate(sorted(set(items)))}
