"""What the bundles that come with the repository promise."""

import json
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from export.rebuild import rebuild
from export.verify import gaps
from service.bundle import Bundle, read_bundle
from service.decoding import Batch, DecodingOptions, Hypothesis, decode, score
from service.engine import Engine, load_engine
from service.session import Graphs, OnnxModel
from service.text import Tokenizer
from service.translator import Translator
from tests.corpus import ROOT, SENTENCES_IN, TATOEBA, needs_tatoeba
from training.evaluate import bleu, load_eval_set

NAMES = ("transformer-en-fr", "bahdanau-en-fr", "transformer-fr-en")
COLUMNS = {"en": 0, "fr": 1}
MAX_BYTES = 16_000_000
MAX_ROWS = 64
CLASSICS: dict[str, dict[str, tuple[str, ...]]] = {
    "en": {
        "Go.": ("Va !",),
        "I lost.": ("J'ai perdu.",),
        "I'm home.": ("Je suis chez moi.",),
        "He's calm.": ("Il est calme.",),
    },
    "fr": {
        "J'ai perdu.": ("I lost.",),
        "Je suis chez moi.": ("I'm home.", "I am home."),
        "Il est calme.": ("He's calm.", "He is calm."),
    },
}
# A rounding that falls the other way moves an int8 activation by a whole step of its scale.
TIES = {"int8": 1e-2, "fp32": 1e-4}


@pytest.fixture(scope="module", params=NAMES)
def shipped(request: pytest.FixtureRequest) -> Bundle:
    return read_bundle(ROOT / "models" / request.param)


@pytest.fixture(scope="module", params=["int8", "fp32"])
def graphs(
    request: pytest.FixtureRequest, shipped: Bundle, tmp_path_factory: pytest.TempPathFactory
) -> Graphs:
    """What is served, and the same weights in float32."""
    if request.param == "int8":
        return Graphs.load(shipped, "int8")
    directory: Path = tmp_path_factory.mktemp("rebuilt") / shipped.manifest.name
    return Graphs.load(rebuild(shipped, directory), "fp32")


def encoded(bundle: Bundle, texts: Sequence[str]) -> list[list[int]]:
    tokenizer = Tokenizer.from_bytes(bundle.tokenizer_bytes("source"))
    return [[*tokenizer.encode(text), bundle.manifest.special_ids.eos] for text in texts]


def assert_same(
    graphs: Graphs,
    sources: Sequence[Sequence[int]],
    these: Sequence[Sequence[Hypothesis]],
    those: Sequence[Sequence[Hypothesis]],
) -> None:
    """At least 99.9 % are the same; where they part, both are equally good to within rounding."""
    differing = [i for i in range(len(these)) if these[i][0].ids != those[i][0].ids]
    assert len(differing) <= max(1, len(these) // 1000), differing
    apart = gaps(
        OnnxModel(graphs, MAX_ROWS),
        [sources[i] for i in differing],
        [these[i][0].ids for i in differing],
        [those[i][0].ids for i in differing],
    )
    [precision] = graphs.manifest.precisions
    assert all(gap <= TIES[precision] for gap in apart), dict(zip(differing, apart, strict=True))


def in_flight(
    graphs: Graphs, sources: Sequence[Sequence[int]], options: DecodingOptions
) -> list[list[Hypothesis]]:
    """Every sentence joins when others are under way, in random company."""
    draw = random.Random(0)
    batch = Batch[int](OnnxModel(graphs, MAX_ROWS), options.beam_size)
    waiting = draw.sample(range(len(sources)), len(sources))
    results: dict[int, list[Hypothesis]] = {}
    while waiting or len(batch):
        free = MAX_ROWS // options.beam_size - len(batch)
        joining = [waiting.pop() for _ in range(min(free, len(waiting), draw.randint(0, 3)))]
        if joining:
            batch.join(joining, [sources[i] for i in joining], [options] * len(joining))
        results.update(batch.step())
    return [results[i] for i in range(len(sources))]


def test_a_bundle_is_small_enough_for_the_repository(shipped: Bundle) -> None:
    assert sum(record.size for record in shipped.manifest.files.values()) <= MAX_BYTES


def test_a_bundle_says_where_it_comes_from_and_how_good_it_is(shipped: Bundle) -> None:
    provenance = shipped.manifest.provenance
    text = json.dumps(provenance)
    assert "CC-BY-2.0-FR" in text and "Tatoeba" in text
    for beam in ("beam_1", "beam_4"):
        assert "nrefs:var" in provenance["scores"]["int8"][beam]["signature"]


def test_the_classic_phrases_come_out_right(shipped: Bundle) -> None:
    classics = CLASSICS[shipped.manifest.source_language]
    engine: Engine = load_engine(shipped, precision="int8", workers=1)
    try:
        found = Translator(shipped, engine).translate(list(classics))
    finally:
        engine.close()
    accepted = classics | listed_references(shipped.manifest.source_language)
    for text, translation in zip(classics, found, strict=True):
        assert translation.text in accepted[text], text
        best = max(bleu(translation.text.split(), a.split(), k=2) for a in accepted[text])
        assert best == pytest.approx(1.0)


def listed_references(language: str) -> dict[str, tuple[str, ...]]:
    """Where the corpus lists other translations of a classic phrase, they are right as well."""
    classics, references = CLASSICS[language], dict[str, tuple[str, ...]]()
    for path in sorted(TATOEBA.glob("*.tsv.gz")):
        sources, targets = load_eval_set(path, COLUMNS[language])
        for source, found in zip(sources, targets, strict=True):
            if source in classics:
                plain = tuple(" ".join(text.replace("’", "'").split()) for text in found)
                references[source] = references.get(source, classics[source]) + plain
    return references


@pytest.mark.parametrize("beam_size", [1, 4])
def test_neighbours_change_nothing(graphs: Graphs, shipped: Bundle, beam_size: int) -> None:
    sources = encoded(shipped, SENTENCES_IN[shipped.manifest.source_language])
    assert_independent(graphs, sources, DecodingOptions(beam_size=beam_size))


@needs_tatoeba
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("beam_size", [1, 4])
def test_neighbours_change_nothing_in_the_whole_test_set(
    graphs: Graphs, shipped: Bundle, beam_size: int
) -> None:
    column = COLUMNS[shipped.manifest.source_language]
    texts, _ = load_eval_set(TATOEBA / "test.tsv.gz", column)
    assert_independent(graphs, encoded(shipped, texts), DecodingOptions(beam_size=beam_size))


def assert_independent(
    graphs: Graphs, sources: Sequence[Sequence[int]], options: DecodingOptions
) -> None:
    width = options.beam_size
    alone = decode(OnnxModel(graphs, width), sources, options, max_rows=width)
    together = decode(OnnxModel(graphs, MAX_ROWS), sources, options, max_rows=MAX_ROWS)
    assert_same(graphs, sources, alone, together)
    assert_same(graphs, sources, alone, in_flight(graphs, sources, options))


def test_a_beam_of_one_is_greedy(graphs: Graphs, shipped: Bundle) -> None:
    sources = encoded(shipped, SENTENCES_IN[shipped.manifest.source_language])
    model = OnnxModel(graphs, MAX_ROWS)
    options = DecodingOptions(beam_size=1, shortlist=False)
    for source, hypotheses in zip(sources, decode(model, sources, options), strict=True):
        ids: list[int] = []
        model.append([source], 1)
        token, position = model.start_id, 0
        while position < 64:
            tokens, positions = np.array([[token]]), np.array([position], np.int32)
            token = int(model.step(tokens, positions, 1, attention=False).ids[0, 0])
            if token == model.eos_id:
                break
            ids.append(token)
            position += 1
        model.reorder(np.arange(0))
        assert hypotheses[0].ids == tuple(ids[: len(hypotheses[0].ids)])


def test_attention_is_that_of_forcing_the_translation(graphs: Graphs, shipped: Bundle) -> None:
    sources = encoded(shipped, SENTENCES_IN[shipped.manifest.source_language])
    options = DecodingOptions(beam_size=4, num_hypotheses=4, attention=True)
    results = decode(OnnxModel(graphs, MAX_ROWS), sources, options, max_rows=MAX_ROWS)
    pairs = [(source, found) for source, all in zip(sources, results, strict=True) for found in all]
    model = OnnxModel(graphs, MAX_ROWS)
    forced = score(model, [source for source, _ in pairs], [found.ids for _, found in pairs])
    # In int8 a sum that rounds to the neighbouring integer moves what a recurrence makes of it.
    tolerance = 1e-2 if "int8" in graphs.manifest.precisions else 1e-4
    for (source, returned), expected in zip(pairs, forced, strict=True):
        assert returned.attention is not None and expected.attention is not None
        assert returned.attention.shape == (len(returned.ids), len(source))
        np.testing.assert_allclose(returned.attention.sum(axis=1), 1, atol=1e-4)
        np.testing.assert_allclose(returned.attention, expected.attention, atol=tolerance)
