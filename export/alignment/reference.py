"""The links of a statistical aligner, and how far the alignment of an attention agrees with them.

Alignment error rate, precision and recall as in Och and Ney 2003, "A systematic comparison of
various statistical alignment models", section 6: precision against the possible links, recall
against the sure ones. People drew both there. Here a link is sure if both directions of the aligner
found it and possible if either did, so the numbers compare layers and models; they don't say how
many links are right.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.text import Token, Tokenizer
from service.text.alignment import align
from service.text.rewriting import Span
from service.text.words import words
from training.data import Example, Pair
from training.vocabulary import EOS_ID

Links = frozenset[tuple[int, int]]
"""Pairs of a source and a target word, in the order of `service.text.words`, from 0."""


@dataclass(frozen=True, slots=True)
class Reference:
    """What an aligner says of a pair; what is sure is also possible."""

    sure: Links
    possible: Links


@dataclass(frozen=True, slots=True)
class Agreement:
    """Counts of links over any number of pairs; agreements add up.

    found: ours; found_sure, found_possible: those of ours that are.
    sure: the aligner's.
    """

    found: int = 0
    found_sure: int = 0
    found_possible: int = 0
    sure: int = 0

    def __add__(self, other: "Agreement") -> "Agreement":
        return Agreement(
            self.found + other.found,
            self.found_sure + other.found_sure,
            self.found_possible + other.found_possible,
            self.sure + other.sure,
        )

    @property
    def precision(self) -> float:
        return self.found_possible / max(1, self.found)

    @property
    def recall(self) -> float:
        return self.found_sure / max(1, self.sure)

    @property
    def error_rate(self) -> float:
        """Alignment error rate, from 0, where all agree, to 1."""
        agreed = self.found_sure + self.found_possible
        return 1 - agreed / max(1, self.found + self.sure)

    def to_dict(self) -> dict[str, float]:
        """As plain JSON, in thousandths."""
        measures = {"precision": self.precision, "recall": self.recall, "aer": self.error_rate}
        return {name: round(value, 3) for name, value in measures.items()}


@dataclass(frozen=True, slots=True)
class AlignedPair:
    """A pair as text, as the model's tokens without EOS, and as the aligner has it."""

    pair: Pair
    source: Sequence[Token]
    target: Sequence[Token]
    reference: Reference

    @property
    def example(self) -> Example:
        source_ids, target_ids = _ids(self.source), _ids(self.target)
        return Example([*source_ids, EOS_ID], [*target_ids, EOS_ID])

    def agreement(self, weights: NDArray[np.floating]) -> Agreement:
        """How far the alignment that the service makes of such attention agrees.

        weights (target tokens, source tokens with EOS last). A word of the model may hold several
        of the aligner's: then it has all their links.
        """
        pair, end = self.pair, len(self.pair.source)
        source_spans = [*_spans(self.source), (end, end)]
        ours = align(pair.source, source_spans, pair.target, _spans(self.target), weights)
        source = _words_in(pair.source, ours.source_words)
        target = _words_in(pair.target, ours.target_words)
        sure, possible = (
            {(source[i], target[j]) for i, j in links if i in source and j in target}
            for links in (self.reference.sure, self.reference.possible)
        )
        found = set(ours.pairs)
        return Agreement(len(found), len(found & sure), len(found & possible), len(sure))


def aligned_pairs(
    pairs: Sequence[Pair],
    references: Sequence[Reference],
    tokenizer: Tokenizer,
    max_tokens: tuple[int, int],
    max_pairs: int,
) -> list[AlignedPair]:
    """As many of the pairs, evenly spread, with at most so many source and target tokens and EOS.

    Without those that are blank on either side.
    """
    step = max(1, -(-len(pairs) // max_pairs))
    chosen = [
        AlignedPair(
            pair, tokenizer.encode_tokens(pair.source), tokenizer.encode_tokens(pair.target), links
        )
        for pair, links in list(zip(pairs, references, strict=True))[::step]
    ]
    return [
        each
        for each in chosen
        if 0 < len(each.source) < max_tokens[0] and 0 < len(each.target) < max_tokens[1]
    ]


def agreement(pairs: Sequence[AlignedPair], weights: Sequence[NDArray[np.floating]]) -> Agreement:
    """Of all pairs together, each with its attention."""
    each = (pair.agreement(looks) for pair, looks in zip(pairs, weights, strict=True))
    return sum(each, Agreement())


def _words_in(text: str, owners: Sequence[Span]) -> dict[int, int]:
    """The owner of each word of a text, by their indices."""
    return {
        word: owner
        for word, (start, end) in enumerate(words(text))
        for owner, (first, last) in enumerate(owners)
        if first < end and start < last
    }


def _spans(tokens: Sequence[Token]) -> list[Span]:
    return [(token.start, token.end) for token in tokens]


def _ids(tokens: Sequence[Token]) -> list[int]:
    return [token.id for token in tokens]
