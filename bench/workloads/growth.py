"""How the cost of a batch grows with its rows, its source length and the vocabulary.

One thread each, every row decoded for the same number of tokens, random words: the shape is all
that counts. Both encode the batch and then decode it greedily.
"""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import numpy as np

from bench.endless import Endless
from bench.random_model import random_bundle
from bench.settings import Settings, comparable, served_precision
from bench.side_by_side import job
from bench.systems import Ctranslate2System, Ids, Peer
from bench.table import Row
from bench.timing import Ratio, alternate
from bench.workloads.corpus import OURS, PEER
from service.bundle import Bundle
from service.decoding import Hypothesis, decode
from service.session import Graphs, OnnxModel

_ROWS, _SOURCE_LENGTH, _NUM_STEPS = 32, 16, 20
_FIRST_WORD = 4
_VOCABULARIES = (8000, 16_000, 32_000, 64_000)


def growth(settings: Settings) -> Iterator[Row]:
    """Milliseconds of a batch of each shape, and target tokens per second."""
    bundle = settings.bundle("transformer")
    sizes = [1 << power for power in range(9) if 1 << power <= settings.max_size]
    longest = bundle.manifest.limits.max_source_tokens
    with tempfile.TemporaryDirectory() as scratch:
        race = _Race(bundle, Path(scratch, "peer"), settings)
        for rows in sizes:
            yield from race.rows(f"{rows} rows", rows, _SOURCE_LENGTH)
        for length in sizes[3:]:
            yield from race.rows(f"source length {length}", _ROWS, min(length, longest))
        for vocabulary in _VOCABULARIES[: 1 if settings.is_quick else None]:
            folder = Path(scratch, str(vocabulary))
            wide = random_bundle(bundle, vocabulary, folder / "bundle")
            race = _Race(wide, folder / "peer", settings)
            yield from race.rows(f"vocabulary {vocabulary:,}", _ROWS, _SOURCE_LENGTH)


class _EndlessSystem:
    """Our search and graphs without the engine, on the calling thread."""

    def __init__(self, bundle: Bundle, max_rows: int) -> None:
        graphs = Graphs.load(bundle, served_precision(bundle))
        self._model = Endless(OnnxModel(graphs, max_rows))
        self._max_rows = max_rows

    def prepare(self, sources: Sequence[Ids]) -> Sequence[Ids]:
        return sources

    def run(self, prepared: Sequence[Ids]) -> list[list[Hypothesis]]:
        options = comparable(1, max_length=_NUM_STEPS)
        return decode(self._model, prepared, options, max_rows=self._max_rows)


class _Race:
    """Both systems with one bundle's weights."""

    def __init__(self, bundle: Bundle, peer_directory: Path, settings: Settings) -> None:
        peer = Peer.write(bundle, peer_directory)
        options = comparable(1, max_length=_NUM_STEPS)
        self._ours = _EndlessSystem(bundle, max(settings.max_size, _ROWS))
        translator = peer.load(inter_threads=1, intra_threads=1)
        self._peer = Ctranslate2System(translator, peer.pieces, options, min_length=_NUM_STEPS)
        self._vocabulary = bundle.manifest.vocabulary_size
        self._eos = bundle.manifest.special_ids.eos
        self._rounds = settings.rounds

    def rows(self, case: str, num_rows: int, source_length: int) -> Iterator[Row]:
        random = np.random.default_rng(0)
        words = random.integers(_FIRST_WORD, self._vocabulary, (num_rows, source_length - 1))
        sources = [[*row, self._eos] for row in words.tolist()]
        jobs = {OURS: job(self._ours, sources), PEER: job(self._peer, sources)}
        alternate(jobs, 1)
        seconds = alternate(jobs, self._rounds)
        for name, each in seconds.items():
            values: dict[str, float | str] = {
                "ms": 1e3 * median(each),
                "tokens/s": num_rows * _NUM_STEPS / median(each),
            }
            if name == OURS:
                values |= Ratio.of(seconds[PEER], each).values("x ctranslate2")
            yield Row("growth", case, name, values)
