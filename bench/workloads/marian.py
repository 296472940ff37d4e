"""An imported Marian model of base size, beside ctranslate2's own import of it and `generate`.

The same checkpoint and the same sentences, one thread each, and every target of the same length:
random weights end anywhere, so nothing is let end. int8 in ours and in ctranslate2, float32 in
`generate`, as each of them is used.
"""

import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import ctranslate2
import torch
from ctranslate2.converters import TransformersConverter
from transformers import MarianMTModel

from bench.endless import Endless
from bench.marian_checkpoint import write_checkpoint
from bench.settings import Settings, comparable
from bench.table import Row
from bench.timing import Ratio, alternate
from bench.workloads.corpus import OURS, PEER
from export.assemble import Description, graph_files, manifest_for
from export.marian import MarianCheckpoint, read_checkpoint
from export.quantize import calibrate
from service.bundle import Limits, write_bundle
from service.decoding import decode
from service.session import Graphs, OnnxModel
from service.text import Tokenizer
from training.vocabulary import EOS_ID

GENERATE = "generate"
_NUM_STEPS, _MAX_SOURCE = 20, 64
# (beam, sentences at once)
_CASES = ((1, 1), (1, 32), (4, 16))
_NUM_SENTENCES, _NUM_CALIBRATED = 32, 16
_QUICK_SIZES = {"encoder_layers": 1, "decoder_layers": 1, "vocab_size": 8_000}

Run = Callable[[Sequence[str]], object]
"""Translates a batch of sentences."""


def marian(settings: Settings) -> Iterator[Row]:
    """Sentences per second, greedy one by one and together, and with a beam."""
    sizes = _QUICK_SIZES if settings.is_quick else {}
    texts = _short(settings.corpus.sources)
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch, "checkpoint")
        theirs = write_checkpoint(directory, settings.corpus.sources, **sizes)
        checkpoint = read_checkpoint(directory)
        graphs = _graphs(checkpoint, texts, Path(scratch, "bundle"))
        with warnings.catch_warnings(action="ignore"):  # of punctuation, and of deprecated names
            peer = _peer(directory, Path(scratch, "peer"))
        for beam_size, batch in _CASES:
            runs = {
                OURS: _ours(graphs, checkpoint, beam_size, batch),
                PEER: _peers(peer, checkpoint, beam_size),
                GENERATE: _generates(theirs, checkpoint, beam_size),
            }
            yield from _rows(f"beam {beam_size}, {batch} at once", runs, texts, batch, settings)


def _rows(
    case: str, runs: dict[str, Run], texts: Sequence[str], batch: int, settings: Settings
) -> Iterator[Row]:
    batches = [texts[first : first + batch] for first in range(0, len(texts), batch)]
    jobs = {name: _over(run, batches) for name, run in runs.items()}
    alternate(jobs, 1)
    seconds = alternate(jobs, settings.rounds)
    for name, each in seconds.items():
        values: dict[str, float | str] = {"sentences/s": len(texts) / median(each)}
        if name == OURS:
            values |= Ratio.of(seconds[PEER], each).values(f"x {PEER}")
            values[f"x {GENERATE}"] = Ratio.of(seconds[GENERATE], each).median
        yield Row("marian base", case, name, values)


def _over(run: Run, batches: Sequence[Sequence[str]]) -> Callable[[], object]:
    return lambda: [run(batch) for batch in batches]


def _short(texts: Sequence[str]) -> list[str]:
    """Sentences of all lengths up to some tokens, the longest first."""
    few = sorted((text for text in texts if len(text) < 4 * _MAX_SOURCE), key=len, reverse=True)
    return few[:: max(1, len(few) // _NUM_SENTENCES)][:_NUM_SENTENCES]


def _graphs(checkpoint: MarianCheckpoint, texts: Sequence[str], directory: Path) -> Graphs:
    """In int8, as `python -m export import` writes them."""
    model = checkpoint.model
    description = Description("base", "1", "en", "fr", Limits(512, 512), attention_layer=0)
    options = description.graph_options
    tokenizer = Tokenizer.from_bytes(checkpoint.vocabularies.source_model)
    sources = [[*tokenizer.encode(text), EOS_ID] for text in texts[:_NUM_CALIBRATED]]
    ranges = calibrate(model, options, [(source, source) for source in sources])
    files = graph_files(model, ["int8"], options, ranges) | checkpoint.tokenizers
    bundle = write_bundle(directory, manifest_for(model, description, ["int8"], {}), files)
    return Graphs.load(bundle, "int8")


def _peer(checkpoint: Path, directory: Path) -> ctranslate2.Translator:
    TransformersConverter(str(checkpoint)).convert(str(directory), quantization="int8")
    return ctranslate2.Translator(
        str(directory), compute_type="int8", inter_threads=1, intra_threads=1
    )


def _ours(graphs: Graphs, checkpoint: MarianCheckpoint, beam_size: int, batch: int) -> Run:
    """The search and the graphs without the engine, on the calling thread."""
    tokenizer = Tokenizer.from_bytes(checkpoint.vocabularies.source_model)
    model = Endless(OnnxModel(graphs, batch * beam_size))
    options = comparable(beam_size, max_length=_NUM_STEPS)

    def run(texts: Sequence[str]) -> object:
        sources = [[*tokenizer.encode(text), EOS_ID] for text in texts]
        return decode(model, sources, options, max_rows=batch * beam_size)

    return run


def _peers(translator: ctranslate2.Translator, checkpoint: MarianCheckpoint, beam_size: int) -> Run:
    tokenizer = Tokenizer.from_bytes(checkpoint.vocabularies.source_model)
    pieces = [*checkpoint.vocabularies.source.pieces]

    def run(texts: Sequence[str]) -> object:
        return translator.translate_batch(
            [[pieces[id] for id in [*tokenizer.encode(text), EOS_ID]] for text in texts],
            beam_size=beam_size,
            min_decoding_length=_NUM_STEPS,
            max_decoding_length=_NUM_STEPS,
        )

    return run


def _generates(model: MarianMTModel, checkpoint: MarianCheckpoint, beam_size: int) -> Run:
    """On one thread as well; tokenised as ours, whose ids its rows are by."""
    tokenizer = Tokenizer.from_bytes(checkpoint.vocabularies.source_model)
    rows, pad = checkpoint.vocabularies.source.rows, checkpoint.settings.pad
    untyped: Any = model

    def run(texts: Sequence[str]) -> object:
        sources = [[rows[id] for id in [*tokenizer.encode(text), EOS_ID]] for text in texts]
        longest = max(map(len, sources))
        padded = torch.tensor([[*ids, *[pad] * (longest - len(ids))] for ids in sources])
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return untyped.generate(
                input_ids=padded,
                attention_mask=(padded != pad).long(),
                num_beams=beam_size,
                min_new_tokens=_NUM_STEPS,
                max_new_tokens=_NUM_STEPS,
            )
        finally:
            torch.set_num_threads(before)

    return run
