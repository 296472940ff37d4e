"""CTranslate2 with the same weights says the same: an independent implementation as the oracle."""

from collections.abc import Sequence
from pathlib import Path

import ctranslate2
import pytest

from bench.ctranslate2_model import save_ctranslate2_model
from export.rebuild import network_of, rebuild
from export.verify import gaps
from service.bundle import read_bundle
from service.decoding import DecodingOptions, decode
from service.session import Graphs, OnnxModel
from service.text import Tokenizer
from tests.corpus import ROOT, SENTENCES, TATOEBA
from training.evaluate import load_eval_set
from training.transformer import Transformer

SHIPPED = ROOT / "models" / "transformer-en-fr"
TIE = 1e-4
MAX_ROWS = 64
MAX_LENGTH = 100


@pytest.mark.timeout(300)
def test_greedy_float32_translations_are_those_of_ctranslate2(tmp_path: Path) -> None:
    """On the whole validation set where it is, else on sentences of our own."""
    corpus = TATOEBA / "valid.tsv.gz"
    texts = load_eval_set(corpus)[0] if corpus.exists() else SENTENCES
    shipped = read_bundle(SHIPPED)
    tokenizer = Tokenizer.from_bytes(shipped.tokenizer_bytes("source"))
    sources = [[*tokenizer.encode(text), tokenizer.eos_id] for text in texts]

    network = network_of(shipped)
    assert isinstance(network, Transformer)
    theirs = translated_by_ctranslate2(network, sources, tmp_path / "peer")
    graphs = Graphs.load(rebuild(shipped, tmp_path / "fp32"), "fp32")
    options = DecodingOptions(max_length=MAX_LENGTH, max_length_ratio=0, shortlist=False)
    results = decode(OnnxModel(graphs, MAX_ROWS), sources, options, max_rows=MAX_ROWS)
    ours = [hypotheses[0].ids for hypotheses in results]

    differing = [i for i in range(len(sources)) if ours[i] != theirs[i]]
    apart = gaps(
        OnnxModel(graphs, MAX_ROWS),
        [sources[i] for i in differing],
        [ours[i] for i in differing],
        [theirs[i] for i in differing],
    )
    assert len(differing) <= len(sources) // 100
    assert all(gap <= TIE for gap in apart), dict(zip(differing, apart, strict=True))


def translated_by_ctranslate2(
    network: Transformer, sources: Sequence[Sequence[int]], directory: Path
) -> list[tuple[int, ...]]:
    # It knows tokens by name alone, so any names do.
    names = ["<pad>", "<unk>", "<s>", "</s>"]
    names += [f"w{index}" for index in range(len(names), network.config.vocabulary_size)]
    ids_of = {name: index for index, name in enumerate(names)}
    save_ctranslate2_model(network, names, directory)
    peer = ctranslate2.Translator(str(directory), compute_type="float32", inter_threads=2)
    results = peer.translate_batch(
        [[names[i] for i in source] for source in sources],
        beam_size=1,
        max_decoding_length=MAX_LENGTH,
        max_batch_size=MAX_ROWS,
    )
    return [tuple(ids_of[name] for name in result.hypotheses[0]) for result in results]
