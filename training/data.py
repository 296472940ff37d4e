"""From files of sentence pairs to batches of token ids.

Owns reading, filtering, augmentation and batching. Everything random follows from (seed, epoch),
so the batches of an epoch are the same whenever and however often they are made: a run resumes
from (epoch, batch index), if `TrainingSet.fingerprint` says that it is still the same set.
"""

import gzip
import hashlib
import logging
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from service.text import Tokenizer
from training.config import AugmentConfig, DataConfig
from training.splitting import PieceSplitter
from training.vocabulary import BOS_ID, EOS_ID, PAD_ID, load_vocabulary, merge_ranks

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence and its translation, as text."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class Example:
    """The ids of a pair, EOS at the end of both sides, no BOS."""

    source_ids: list[int]
    target_ids: list[int]


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded ids: int64, PAD_ID beyond each row's end."""

    source_ids: Tensor  # (batch, source_len), EOS last
    source_lengths: Tensor  # (batch,)
    target_ids: Tensor  # (batch, target_len), BOS first: what the decoder reads
    label_ids: Tensor  # (batch, target_len), EOS last: what it must say


def read_pairs(path: Path, source_column: int = 0) -> list[Pair]:
    """Read `text<TAB>text` lines from a gzip file, the source in the given column, 0 or 1.

    Raises:
        ValueError: naming the line that has not two columns, or the file if it is empty or is no
            gzipped UTF-8.
    """
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as lines:
            rows = [line.rstrip("\n").split("\t") for line in lines]
    except (gzip.BadGzipFile, EOFError, zlib.error, UnicodeDecodeError) as exc:
        raise ValueError(f"{path} is no gzipped UTF-8 text: {exc}") from exc
    for number, columns in enumerate(rows, start=1):
        if len(columns) != 2:
            raise ValueError(f"{path}:{number} has {len(columns)} columns, expected 2")
    if not rows:
        raise ValueError(f"{path} is empty; it must hold lines of text<TAB>text")
    return [Pair(columns[source_column], columns[1 - source_column]) for columns in rows]


class TrainingSet:
    """The pairs fit to train on, and the batches of every epoch.

    `vocabulary` holds the bytes of the SentencePiece file. Sets of one `fingerprint` have the same
    batches in every epoch.
    """

    def __init__(
        self,
        pairs: Sequence[Pair],
        vocabulary: bytes,
        config: DataConfig,
        augment: AugmentConfig,
        seed: int,
    ) -> None:
        self._tokenizer = load_vocabulary(vocabulary)
        self._splitter = PieceSplitter(merge_ranks(vocabulary), self._tokenizer.vocabulary_size)
        self._config = config
        self._augment = augment
        self._seed = seed
        examples = encode_pairs(self._tokenizer, pairs)
        self._pairs = [p for p, e in zip(pairs, examples, strict=True) if self._is_sound(e)]
        logger.info("%d pairs, %d dropped", len(self._pairs), len(pairs) - len(self._pairs))
        if not self._pairs:
            raise ValueError(
                f"none of {len(pairs)} pairs is fit to train on; see data.max_tokens = "
                f"{config.max_tokens} and data.max_length_ratio = {config.max_length_ratio}"
            )
        repeats = [self._repeats(e) for e in examples if self._is_sound(e)]
        self._epoch = np.repeat(np.arange(len(repeats)), repeats)
        bounds = (
            config.max_tokens,
            config.max_length_ratio,
            config.batch_tokens,
            config.common_tokens,
        )
        self.fingerprint = _fingerprint(vocabulary, bounds, augment, seed, self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)

    def batches(self, epoch: int) -> list[list[Example]]:
        """Return the epoch's batches in training order; `collate` makes tensors of one."""
        random = np.random.default_rng([self._seed, epoch])
        shuffled = [self._pairs[i] for i in random.permutation(self._epoch)]
        examples = encode_pairs(self._tokenizer, augment(shuffled, self._augment, random))
        examples = self._split_pieces(examples, random)
        batches = bucket([e for e in examples if self._is_sound(e)], self._config.batch_tokens)
        return [batches[i] for i in random.permutation(len(batches))]

    def _repeats(self, example: Example) -> int:
        return max(1, int((self._config.common_tokens / len(example.target_ids)) ** 3))

    def _is_sound(self, example: Example) -> bool:
        lengths = (len(example.source_ids), len(example.target_ids))
        if min(lengths) < 2 or max(lengths) > self._config.max_tokens:
            return False
        return max(lengths) <= max(10, self._config.max_length_ratio * min(lengths))

    def _split_pieces(
        self, examples: Sequence[Example], random: np.random.Generator
    ) -> list[Example]:
        split = self._splitter.split
        sources = split([e.source_ids for e in examples], self._augment.source_splits, random)
        targets = split([e.target_ids for e in examples], self._augment.target_splits, random)
        return [Example(s, t) for s, t in zip(sources, targets, strict=True)]


def augment(
    pairs: Sequence[Pair], config: AugmentConfig, random: np.random.Generator
) -> list[Pair]:
    """Join runs of neighbours and change the case of some pairs."""
    augmented = []
    position = 0
    while position < len(pairs):
        joins = random.random() < config.join
        size = int(random.integers(2, config.max_joined + 1)) if joins else 1
        run = pairs[position : position + size]
        position += size
        pair = (
            Pair(" ".join(p.source for p in run), " ".join(p.target for p in run))
            if joins
            else run[0]
        )
        augmented.append(_change_case(pair, config, random.random()))
    return augmented


def bucket(examples: Sequence[Example], batch_tokens: int) -> list[list[Example]]:
    """Cut the examples, sorted by length, into batches of `batch_tokens` padded tokens at most.

    Source and target tokens count. Equal lengths keep the order of `examples`, so shuffling them
    first varies the company an example is in. A single example above the budget is a batch of its
    own.
    """
    batches: list[list[Example]] = []
    source_len = target_len = 0
    for example in sorted(examples, key=lambda e: (len(e.target_ids), len(e.source_ids))):
        source_len = max(source_len, len(example.source_ids))
        target_len = max(target_len, len(example.target_ids))
        if not batches or (len(batches[-1]) + 1) * (source_len + target_len) > batch_tokens:
            batches.append([])
            source_len, target_len = len(example.source_ids), len(example.target_ids)
        batches[-1].append(example)
    return batches


def collate(examples: Sequence[Example]) -> Batch:
    """Pad the examples to one length a side."""
    return Batch(
        source_ids=pad([e.source_ids for e in examples]),
        source_lengths=torch.tensor([len(e.source_ids) for e in examples]),
        target_ids=pad([[BOS_ID, *e.target_ids[:-1]] for e in examples]),
        label_ids=pad([e.target_ids for e in examples]),
    )


def pad(rows: Sequence[Sequence[int]]) -> Tensor:
    """Return (rows, longest row) int64, PAD_ID beyond each row's end."""
    padded = np.full((len(rows), max(map(len, rows))), PAD_ID, dtype=np.int64)
    for row, ids in zip(padded, rows, strict=True):
        row[: len(ids)] = ids
    return torch.from_numpy(padded)


def _change_case(pair: Pair, config: AugmentConfig, draw: float) -> Pair:
    if draw < config.upper_case:
        return Pair(pair.source.upper(), pair.target.upper())
    if draw < config.upper_case + config.lower_case_source:
        return Pair(pair.source.lower(), pair.target)
    return pair


def _fingerprint(*origins: object) -> str:
    """Hash what everything else follows from."""
    return hashlib.sha256(repr(origins).encode()).hexdigest()


def encode_pairs(tokenizer: Tokenizer, pairs: Sequence[Pair]) -> list[Example]:
    """Segment both sides and end them with EOS."""
    encode = tokenizer.encode
    return [Example([*encode(p.source), EOS_ID], [*encode(p.target), EOS_ID]) for p in pairs]
