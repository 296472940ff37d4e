"""CTranslate2 with the same weights says the same: an independent implementation as the oracle."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ctranslate2
import pytest

from bench.ctranslate2_model import save_ctranslate2_model
from export.rebuild import network_of, rebuild
from export.verify import gaps
from service.bundle import read_bundle
from service.decoding import DecodingOptions, Stopping, decode
from service.session import Graphs, OnnxModel
from service.text import Tokenizer
from tests.corpus import ROOT, SENTENCES, TATOEBA
from training.evaluate import load_eval_set
from training.transformer import Transformer

SHIPPED = ROOT / "models" / "transformer-en-fr"
Ranked = list[tuple[tuple[int, ...], float]]
CORPUS = TATOEBA / "valid.tsv.gz"
TIE = 1e-4
MAX_ROWS = 64
MAX_LENGTH = 100
# CTranslate2 knows tokens by name alone, so any names do.
SPECIAL = ["<pad>", "<unk>", "<s>", "</s>"]


class Peers:
    """The shipped weights in float32 on both sides, and the sentences: the validation set where it
    is, else some of our own.
    """

    def __init__(self, directory: Path) -> None:
        shipped = read_bundle(SHIPPED)
        tokenizer = Tokenizer.from_bytes(shipped.tokenizer_bytes("source"))
        texts = load_eval_set(CORPUS)[0] if CORPUS.exists() else SENTENCES
        self.sources = [[*tokenizer.encode(text), tokenizer.eos_id] for text in texts]
        self.graphs = Graphs.load(rebuild(shipped, directory / "fp32"), "fp32")
        network = network_of(shipped)
        assert isinstance(network, Transformer)
        size = network.config.vocabulary_size
        self._names = [*SPECIAL, *(f"w{index}" for index in range(len(SPECIAL), size))]
        self._ids = {name: index for index, name in enumerate(self._names)}
        save_ctranslate2_model(network, self._names, directory / "peer")
        self._peer = ctranslate2.Translator(
            str(directory / "peer"), compute_type="float32", inter_threads=2
        )

    def ours(self, sources: Sequence[Sequence[int]], **asked: Any) -> list[Ranked]:
        options = DecodingOptions(
            max_length=MAX_LENGTH,
            max_length_ratio=0,
            shortlist=False,
            stopping=Stopping.FINISHED,
            **asked,
        )
        results = decode(OnnxModel(self.graphs, MAX_ROWS), sources, options, max_rows=MAX_ROWS)
        return [[(found.ids, found.score) for found in ranked] for ranked in results]

    def theirs(self, sources: Sequence[Sequence[int]], **asked: Any) -> list[Ranked]:
        results = self._peer.translate_batch(
            [[self._names[id] for id in source] for source in sources],
            max_decoding_length=MAX_LENGTH,
            min_decoding_length=0,  # else it never says nothing
            max_batch_size=MAX_ROWS // 4,
            return_scores=True,
            **asked,
        )
        return [
            [
                (tuple(self._ids[name] for name in names), score)
                for names, score in zip(result.hypotheses, result.scores, strict=True)
            ]
            for result in results
        ]


@pytest.fixture(scope="module")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Peers:
    return Peers(tmp_path_factory.mktemp("peers"))


@pytest.mark.timeout(300)
def test_greedy_float32_translations_are_those_of_ctranslate2(peers: Peers) -> None:
    ours, theirs = (
        [ranked[0][0] for ranked in translate(peers.sources, beam_size=1)]
        for translate in (peers.ours, peers.theirs)
    )
    differing = [i for i in range(len(ours)) if ours[i] != theirs[i]]
    apart = gaps(
        OnnxModel(peers.graphs, MAX_ROWS),
        [peers.sources[i] for i in differing],
        [ours[i] for i in differing],
        [theirs[i] for i in differing],
    )
    assert len(differing) <= len(ours) // 100
    assert all(gap <= TIE for gap in apart), dict(zip(differing, apart, strict=True))


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "count", [pytest.param(40, id="some"), pytest.param(None, id="all", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("beam_size", [1, 4, 8])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_every_hypothesis_of_a_beam_is_that_of_ctranslate2(
    peers: Peers, count: int | None, beam_size: int, alpha: float
) -> None:
    """Ids and scores, rank by rank. A rounding of the batch may decide a tie at the edge of a beam:
    then both say the same of the sentence by itself.
    """
    sources = peers.sources[:count]
    asked: dict[str, Any] = {
        "beam_size": beam_size,
        "num_hypotheses": beam_size,
        "length_penalty": alpha,
    }
    pairs = zip(peers.ours(sources, **asked), peers.theirs(sources, **asked), strict=True)
    differing = [index for index, pair in enumerate(pairs) if not same(*pair)]
    assert len(differing) <= len(sources) // 1000
    for index in differing:
        alone = [sources[index]]
        assert same(peers.ours(alone, **asked)[0], peers.theirs(alone, **asked)[0]), index


def same(mine: Ranked, other: Ranked) -> bool:
    scores = [score for _, score in other]
    has_same_scores = [score for _, score in mine] == pytest.approx(scores, abs=1e-3)
    return has_same_scores and [ids for ids, _ in mine] == [ids for ids, _ in other]
