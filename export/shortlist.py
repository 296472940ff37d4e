"""Which target pieces each source piece may become, learned from the training data.

IBM model 1 (Brown et al. 1993, "The mathematics of statistical machine translation", section 4.2)
on pieces: every target piece comes from one source piece, and EOS, which every source ends with,
explains what none of the others does.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sentencepiece import SentencePieceProcessor

from service.bundle import Lexicon
from training.data import Example
from training.vocabulary import EOS_ID

NUM_COMMON = 1536
MAX_WORDS_PER_PIECE = 64
_ITERATIONS = 5
# A word that is expected to come from a piece less often than that, in all of the data, is noise.
_MIN_EXPECTED_COUNT = 0.5

Ids = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Translations:
    """Pairs of pieces that occur together; all arrays are (pairs,).

    counts are how often the source piece is expected to become the target piece; probabilities
    the share of that among all that it becomes.
    """

    sources: Ids
    targets: Ids
    counts: NDArray[np.float64]
    probabilities: NDArray[np.float64]


def build_lexicon(
    examples: Sequence[Example], vocabulary: bytes, num_common: int = NUM_COMMON
) -> Lexicon:
    """The lexicon of the training data; `vocabulary` holds the bytes of the SentencePiece file."""
    processor = SentencePieceProcessor(model_proto=vocabulary)
    size = processor.vocab_size()
    common = _common(examples, processor, num_common)
    found = align(examples, size)
    is_common = np.zeros(size, np.bool_)
    is_common[common] = True
    chosen = (
        (found.counts >= _MIN_EXPECTED_COUNT)
        & ~is_common[found.targets]
        & (found.sources != found.targets)
        & (found.sources != EOS_ID)
    )
    # A piece is the first of its own candidates: names, numbers and bytes stay as they are.
    itself = np.flatnonzero(~is_common)
    sources = np.concatenate([itself, found.sources[chosen]])
    targets = np.concatenate([itself, found.targets[chosen]])
    worth = np.concatenate([np.full(len(itself), 2.0), found.probabilities[chosen]])
    order = np.lexsort((-worth, sources))
    ranks = np.arange(len(order)) - np.searchsorted(sources[order], sources[order])
    order = order[ranks < MAX_WORDS_PER_PIECE]
    offsets = np.searchsorted(sources[order], np.arange(size + 1))
    return Lexicon(*(ids.astype(np.int32) for ids in (common, offsets, targets[order])))


def align(examples: Sequence[Example], vocabulary_size: int) -> Translations:
    """Model 1 by expectation maximisation, from equal probabilities on."""
    widths, cells = zip(*(_cells(example, vocabulary_size) for example in examples), strict=True)
    pairs, index = np.unique(np.concatenate(cells), return_inverse=True)
    # Cells lie target piece by target piece, and each has as many as its sentence has sources.
    of_target = np.concatenate(widths)
    starts = np.cumsum(of_target) - of_target
    sources = pairs // vocabulary_size
    probabilities = np.ones(len(pairs))
    for _ in range(_ITERATIONS):
        shares = probabilities[index]
        shares /= np.repeat(np.add.reduceat(shares, starts), of_target)
        counts = np.bincount(index, shares, len(pairs)).astype(np.float64)
        probabilities = counts / np.bincount(sources, counts)[sources]
    return Translations(sources, pairs % vocabulary_size, counts, probabilities)


def _cells(example: Example, vocabulary_size: int) -> tuple[Ids, Ids]:
    """Number of source pieces for each target piece, and every pair of a source and a target."""
    sources, targets = np.array(example.source_ids), np.array(example.target_ids)
    pairs = sources[None, :] * vocabulary_size + targets[:, None]
    return np.full(len(targets), len(sources)), pairs.ravel()


def _common(
    examples: Sequence[Example], processor: SentencePieceProcessor, num_common: int
) -> NDArray[Any]:
    """EOS, marks and digits, and then the most frequent target pieces."""
    always = np.array([EOS_ID, *_marks_and_digits(processor)])
    targets = np.concatenate([example.target_ids for example in examples])
    frequency = np.bincount(targets, minlength=processor.vocab_size())
    frequency[always] = len(targets) + 1
    return np.sort(np.argsort(-frequency, kind="stable")[:num_common])


def _marks_and_digits(processor: SentencePieceProcessor) -> Iterator[int]:
    for index in range(processor.vocab_size()):
        text = processor.id_to_piece(index).replace("▁", "")
        special = processor.is_byte(index) or processor.is_control(index)
        if text and not special and all(unicodedata.category(c)[0] in "PSN" for c in text):
            yield index
