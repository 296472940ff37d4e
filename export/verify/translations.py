"""Translating an evaluation set with any engine, and telling two engines' translations apart."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from service.bundle import Bundle
from service.decoding import DecodingOptions, Hypothesis, StepModel, decode, score
from service.text import Tokenizer
from training.evaluate import BleuScore, corpus_bleu, load_eval_set


@dataclass(frozen=True, slots=True)
class EvalSet:
    """Sentences, and the references of each."""

    sources: Sequence[str]
    references: Sequence[Sequence[str]]

    @classmethod
    def load(cls, path: Path, source_column: int, max_sentences: int | None = None) -> "EvalSet":
        """The distinct sources of a file of pairs, or as many, evenly spread over it."""
        sources, references = load_eval_set(path, source_column)
        step = max(1, len(sources) // (max_sentences or len(sources)))
        chosen = slice(0, step * (max_sentences or len(sources)), step)
        return cls(sources[chosen], references[chosen])


@dataclass(frozen=True, slots=True)
class Translations:
    """The best hypothesis of each sentence, and their BLEU."""

    source_ids: Sequence[Sequence[int]]
    hypotheses: Sequence[Hypothesis]
    score: BleuScore
    seconds: float
    """That decoding took, without tokenising."""

    @property
    def sentences_a_second(self) -> float:
        return len(self.hypotheses) / self.seconds

    def same_share(self, other: "Translations") -> float:
        """The share of sentences that got the same ids, from 0 to 1."""
        return 1 - len(self.differing(other)) / len(self.hypotheses)

    def differing(self, other: "Translations") -> list[int]:
        """The sentences that did not."""
        pairs = zip(self.hypotheses, other.hypotheses, strict=True)
        return [index for index, (a, b) in enumerate(pairs) if a.ids != b.ids]


@dataclass(frozen=True, slots=True)
class Difference:
    """A sentence that got two translations, and how far apart these are in the reference."""

    sentence: int
    gap: float


def tokenizers_of(bundle: Bundle) -> tuple[Tokenizer, Tokenizer]:
    """Of the source and of the target."""
    source = Tokenizer.from_bytes(bundle.tokenizer_bytes("source"), bundle.manifest.source_prefix)
    return source, Tokenizer.from_bytes(bundle.tokenizer_bytes("target"))


def translate(
    model: StepModel,
    tokenizers: tuple[Tokenizer, Tokenizer],
    sentences: EvalSet,
    beam_size: int,
    max_rows: int,
    *,
    max_length: int,
    shortlist: bool = True,
) -> Translations:
    """Decode all sentences with the search that serves, `max_rows` rows in flight."""
    options = DecodingOptions(beam_size=beam_size, max_length=max_length, shortlist=shortlist)
    source, target = tokenizers
    source_ids = [[*source.encode(text), model.eos_id] for text in sentences.sources]
    start = time.perf_counter()
    found = decode(model, source_ids, options, max_rows=max_rows)
    seconds = time.perf_counter() - start
    best = [hypotheses[0] for hypotheses in found]
    texts = [target.decode(hypothesis.ids) for hypothesis in best]
    return Translations(source_ids, best, corpus_bleu(texts, sentences.references), seconds)


def differences(
    reference: StepModel, expected: Translations, found: Translations
) -> list[Difference]:
    """Where two engines differ, and whether the reference could tell."""
    indices = expected.differing(found)
    found_gaps = gaps(
        reference,
        [expected.source_ids[i] for i in indices],
        [expected.hypotheses[i].ids for i in indices],
        [found.hypotheses[i].ids for i in indices],
    )
    return [Difference(*pair) for pair in zip(indices, found_gaps, strict=True)]


def gaps(
    reference: StepModel,
    sources: Sequence[Sequence[int]],
    these: Sequence[Sequence[int]],
    those: Sequence[Sequence[int]],
) -> list[float]:
    """How far apart two translations (ids without EOS) of each source are in the reference.

    The gap is between the two tokens at which a greedy search went apart, or between the scores of
    the two translations, whichever is smaller: a beam can go apart long before the best one does.
    """
    pairs = zip(score(reference, sources, these), score(reference, sources, those), strict=True)
    return [_gap(a, b) for a, b in pairs]


def _gap(a: Hypothesis, b: Hypothesis) -> float:
    # Where one translation is the beginning of the other, its EOS is what differs.
    common = min(len(a.ids), len(b.ids))
    split = next((i for i in range(common) if a.ids[i] != b.ids[i]), common)
    by_token = np.abs(a.token_log_probs[split] - b.token_log_probs[split])
    return float(min(by_token, abs(a.score - b.score)))
