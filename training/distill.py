"""Sequence-level knowledge distillation: what a trained teacher says, for a student to learn from.

A teacher's translations are more alike than people's, so that a small model comes closer to them
(Kim and Rush 2016, "Sequence-Level Knowledge Distillation", section 3.2). Owns the search over a
whole corpus and the file of pairs; whose they are to train on, a configuration says (`distilled`).
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
from training.step_model import TorchStepModel
from training.vocabulary import EOS_ID, load_vocabulary

_CHUNK_SENTENCES = 2048
_MAX_ROWS = 256


def distill(
    teacher: TrainedTranslator, sources: Sequence[str], options: DecodingOptions
) -> list[Pair]:
    """Return each source with the teacher's translation, in the order given.

    Left out are sources with no token, those with more than the teacher was trained on, and those
    whose translation reached the length limit or is empty.
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
            for index, hypothesis in zip(chunk, found, strict=True):
                if hypothesis.finish_reason is FinishReason.END_OF_SENTENCE:
                    translations[index] = _one_line(tokenizer.decode(hypothesis.ids))
            bar.update(len(chunk))
    return [Pair(sources[i], text) for i, text in sorted(translations.items()) if text]


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
) -> list[Hypothesis]:
    with torch.autocast("cpu", torch.bfloat16, enabled=teacher.config.run.autocast):
        results = decode(TorchStepModel(teacher.model), source_ids, options, max_rows=_MAX_ROWS)
    return [hypotheses[0] for hypotheses in results]


def _one_line(text: str) -> str:
    """Text without the tabs and line ends that would break the file."""
    return " ".join(text.split())
