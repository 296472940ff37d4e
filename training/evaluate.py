"""Translation quality: reading evaluation sets, translating them with a torch model, and BLEU."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sacrebleu
import torch
from torch.nn import functional

from service.decoding import DecodingOptions, decode
from service.text import Tokenizer
from training.config import DataConfig, TrainingConfig
from training.data import Batch, bucket, collate, encode_pairs, read_pairs
from training.model import Translator
from training.step_model import TorchStepModel
from training.vocabulary import EOS_ID, PAD_ID

_SENTENCE_BLEU = sacrebleu.BLEU(tokenize="13a", effective_order=True)


@dataclass(frozen=True, slots=True)
class ValidationResult:
    """How good a model is on the validation set."""

    loss: float  # nats a target token, without smoothing
    bleu: float  # greedy, 0 to 100


@dataclass(frozen=True, slots=True)
class BleuScore:
    """A corpus's BLEU, and how it was computed (Post 2018)."""

    bleu: float  # 0 to 100
    signature: str  # sacreBLEU's, with everything that is needed to compute it again


def load_eval_set(path: Path, source_column: int = 0) -> tuple[list[str], list[list[str]]]:
    """Return the distinct sources in the file's order, and each one's distinct references."""
    references: dict[str, dict[str, None]] = {}
    for pair in read_pairs(path, source_column):
        references.setdefault(pair.source, {})[pair.target] = None
    return list(references), [list(targets) for targets in references.values()]


def corpus_bleu(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> BleuScore:
    """Score one hypothesis a source, cased, 13a tokens, against all its references (Post 2018)."""
    width = max(map(len, references))
    streams: Any = [[r[i] if i < len(r) else None for r in references] for i in range(width)]
    metric = sacrebleu.BLEU(tokenize="13a")
    score = metric.corpus_score(list(hypotheses), streams)
    return BleuScore(score.score, str(metric.get_signature()))


def sentence_bleu(hypothesis: str, references: Sequence[str]) -> float:
    """Score one translation from 0 to 100, with no longer n-grams than it has; as `corpus_bleu`."""
    return float(_SENTENCE_BLEU.sentence_score(hypothesis, list(references)).score)


def bleu(prediction_tokens: Sequence[str], label_tokens: Sequence[str], k: int) -> float:
    """Return the textbook BLEU of one sentence with n-grams up to `k`, from 0 to 1.

    exp(min(0, 1 - len_label / len_prediction)) * product over n of p_n ** (1 / 2**n), where p_n
    is the share of the prediction's n-grams that are in the label, each label n-gram matching
    once (Zhang et al., Dive into Deep Learning, section 10.7.6). Longer n-grams count more; a
    prediction shorter than `k` scores only the lengths that it has.

    Raises:
        ValueError: if `k` < 1.
    """
    if k < 1:
        raise ValueError(f"k is {k}; BLEU needs n-grams of at least one token")
    if not prediction_tokens:
        return 0.0
    score = math.exp(min(0.0, 1.0 - len(label_tokens) / len(prediction_tokens)))
    for n in range(1, min(k, len(prediction_tokens)) + 1):
        predicted, expected = _ngrams(prediction_tokens, n), _ngrams(label_tokens, n)
        score *= ((predicted & expected).total() / predicted.total()) ** (0.5**n)
    return score


class Validator:
    """Scores a model on the validation set, the same sentences every time."""

    def __init__(self, config: TrainingConfig, tokenizer: Tokenizer) -> None:
        data = config.data
        path = Path(data.data_dir, data.valid)
        sources, references = load_eval_set(path, data.source_column)
        chosen = range(0, len(sources), max(1, len(sources) // config.run.validation_sentences))
        self._sources = [sources[i] for i in chosen]
        self._references = [references[i] for i in chosen]
        self._tokenizer = tokenizer
        self._batches = _validation_batches(path, tokenizer, data)

    def __call__(self, model: Translator) -> ValidationResult:
        hypotheses = translate(model, self._tokenizer, self._sources)
        return ValidationResult(
            loss=mean_loss(model, self._batches),
            bleu=corpus_bleu(hypotheses, self._references).bleu,
        )


def translate(
    model: Translator,
    tokenizer: Tokenizer,
    sources: Sequence[str],
    options: DecodingOptions = DecodingOptions(),  # noqa: B008 - frozen
) -> list[str]:
    """Return the best translation of each source, found with the service's own search."""
    source_ids = [[*tokenizer.encode(source), EOS_ID] for source in sources]
    results = decode(TorchStepModel(model), source_ids, options)
    return [tokenizer.decode(hypotheses[0].ids) for hypotheses in results]


@torch.no_grad()
def mean_loss(model: Translator, batches: Sequence[Batch]) -> float:
    """Return the cross-entropy a target token, in nats, without smoothing."""
    model.eval()
    total, num_tokens = 0.0, 0
    for batch in batches:
        real = batch.label_ids != PAD_ID
        features = model.decoder_features(batch.source_ids, batch.source_lengths, batch.target_ids)
        logits = model.output_layer(features[real])
        total += functional.cross_entropy(logits, batch.label_ids[real], reduction="sum").item()
        num_tokens += int(real.sum())
    return total / num_tokens


def _validation_batches(path: Path, tokenizer: Tokenizer, data: DataConfig) -> list[Batch]:
    """Return every pair of the file in batches of the training size."""
    examples = encode_pairs(tokenizer, read_pairs(path, data.source_column))
    return [collate(batch) for batch in bucket(examples, data.batch_tokens)]


def _ngrams(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))
