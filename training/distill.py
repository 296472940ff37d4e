"""Sequence-level knowledge distillation: what a trained teacher says, for a student to learn from.

A teacher's translations are more alike than people's, so that a small model comes closer to them
(Kim and Rush 2016, "Sequence-Level Knowledge Distillation", section 3.2). Of several that the
teacher finds, the one most like what people wrote is taken (section 3.3): where it prefers
`Allez !` and people wrote `Va !`, the student learns theirs. Owns the search over a whole corpus
and the file of pairs; whose they are to train on, a configuration says (`distilled`).
"""

import gzip
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from tqdm import tqdm

from service.decoding import DecodingOptions, FinishReason, Hypothesis, decode
from training.checkpoint import TrainedTranslator
from training.data import Pair
from training.evaluate import sentence_bleu
from training.step_model import TorchStepModel
from training.vocabulary import EOS_ID, load_vocabulary

_CHUNK_SENTENCES = 2048
_MAX_ROWS = 256


def distill(
    teacher: TrainedTranslator,
    sources: Sequence[str],
    references: Sequence[Sequence[str]],
    options: DecodingOptions,
) -> list[Pair]:
    """Return each source with the teacher's translation, in the order given.

    Of `options.num_hypotheses` translations it is the one with the highest BLEU against all
    `references` of its source; of equals, the teacher's favourite. Left out are sources with no
    token, those with more than the teacher was trained on, and those whose translations all
    reached the length limit or are empty.
    """
    tokenizer = load_vocabulary(teacher.vocabulary)
    source_ids = [[*tokenizer.encode(source), EOS_ID] for source in sources]
    max_tokens = teacher.config.data.max_tokens
    fit = [i for i, ids in enumerate(source_ids) if 1 < len(ids) <= max_tokens]
    fit.sort(key=lambda i: len(source_ids[i]))  # a chunk of one length wastes the least padding
    translations: dict[int, str] = {}
    with tqdm(total=len(fit), unit=" sentences", dynamic_ncols=True) as bar:
        for start in range(0, len(fit), _CHUNK_SENTENCES):
            chunk = fit[start : start + _CHUNK_SENTENCES]
            found = _translate(teacher, [source_ids[i] for i in chunk], options)
            for index, hypotheses in zip(chunk, found, strict=True):
                texts = [_one_line(tokenizer.decode(each.ids)) for each in hypotheses]
                if texts := list(filter(None, texts)):
                    translations[index] = _closest(texts, references[index])
            bar.update(len(chunk))
    return [Pair(sources[i], text) for i, text in sorted(translations.items())]


def write_pairs(path: Path, pairs: Iterable[Pair], source_column: int = 0) -> None:
    """Write what `read_pairs` reads: the same bytes for the same pairs, and all of them or none."""
    lines = []
    for pair in pairs:
        columns = (pair.source, pair.target) if source_column == 0 else (pair.target, pair.source)
        lines.append("\t".join(columns) + "\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".partial")
    temporary.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))
    os.replace(temporary, path)


def _translate(
    teacher: TrainedTranslator, source_ids: Sequence[Sequence[int]], options: DecodingOptions
) -> list[list[Hypothesis]]:
    """Return the translations of each source that came to an end, best first."""
    with torch.autocast("cpu", torch.bfloat16, enabled=teacher.config.run.autocast):
        results = decode(TorchStepModel(teacher.model), source_ids, options, max_rows=_MAX_ROWS)
    ended = FinishReason.END_OF_SENTENCE
    return [[each for each in result if each.finish_reason is ended] for result in results]


def _closest(texts: Sequence[str], references: Sequence[str]) -> str:
    """Return the text most like the references, the first of equals."""
    if len(texts) == 1:
        return texts[0]
    return max(texts, key=lambda text: sentence_bleu(text, references))


def _one_line(text: str) -> str:
    """Text without the tabs and line ends that would break the file."""
    return " ".join(text.split())
