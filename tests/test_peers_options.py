"""CTranslate2's decoding options against ours, with the same weights in float32.

Where ours differ on purpose, and what is compared then:

* What a ban leaves isn't rescaled here; there the banned token's probability goes to the others.
  Greedy search says the same; of the beams, other ones may survive.
* A repetition penalty is on log-probabilities here and on logits there, where it divides those that
  are positive. Only a penalty that forbids every repetition is the same.
* A prefix is scored here, at what the model thinks of it, and costs nothing there.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import ctranslate2
import pytest

from bench.ctranslate2_model import save_ctranslate2_model
from service.decoding import DecodingOptions, Hypothesis, Stopping, decode
from service.session import Graphs, OnnxModel
from tests.tiny_bundle import VOCABULARY_SIZE, random_sources, tiny_bundle, tiny_network
from training.transformer import Transformer

SOURCES = random_sources(40)
MAX_LENGTH = 30
PREFIX = (10, 20, 30)
NAMES = ["<pad>", "<unk>", "<s>", "</s>", *(f"w{index}" for index in range(4, VOCABULARY_SIZE))]
IDS = {name: index for index, name in enumerate(NAMES)}
Ranked = list[tuple[tuple[int, ...], float]]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("peers")


@pytest.fixture(scope="module")
def graphs(directory: Path) -> Graphs:
    return Graphs.load(tiny_bundle(directory / "bundle", "transformer"), "fp32")


@pytest.fixture(scope="module")
def peer(directory: Path) -> Iterator[Any]:
    network = tiny_network("transformer")
    assert isinstance(network, Transformer)
    save_ctranslate2_model(network, NAMES, directory / "peer", attention_layer=0)
    yield ctranslate2.Translator(
        str(directory / "peer"), compute_type="float32", inter_threads=1, intra_threads=1
    )


def our_hypotheses(graphs: Graphs, **asked: Any) -> list[list[Hypothesis]]:
    options = DecodingOptions(
        max_length=MAX_LENGTH, max_length_ratio=0, stopping=Stopping.FINISHED, **asked
    )
    return decode(OnnxModel(graphs, 64), SOURCES, options)


def ours(graphs: Graphs, **asked: Any) -> list[Ranked]:
    results = our_hypotheses(graphs, **asked)
    return [[(found.ids, found.score) for found in hypotheses] for hypotheses in results]


def theirs(peer: Any, prefix: Sequence[int] = (), **asked: Any) -> list[Ranked]:
    asked = {"min_decoding_length": 0, "num_hypotheses": asked["beam_size"]} | asked
    if "suppress_sequences" in asked:
        named = [[NAMES[id] for id in sequence] for sequence in asked["suppress_sequences"]]
        asked["suppress_sequences"] = named
    results = peer.translate_batch(
        [[NAMES[id] for id in source] for source in SOURCES],
        [[NAMES[id] for id in prefix]] * len(SOURCES) if prefix else None,
        max_decoding_length=MAX_LENGTH,
        return_scores=True,
        # Its coverage penalty needs the attention, and counts the padding of a batch.
        return_attention=True,
        max_batch_size=1,
        **asked,
    )
    return [
        [(tuple(IDS[name] for name in names), score) for names, score in zip(*pair, strict=True)]
        for pair in ((result.hypotheses, result.scores) for result in results)
    ]


def ids(results: Sequence[Ranked]) -> list[list[tuple[int, ...]]]:
    return [[each for each, _ in ranked] for ranked in results]


def assert_same(these: Sequence[Ranked], those: Sequence[Ranked]) -> None:
    """Hypotheses and scores, but for one sentence with a tie: its own batch size decides there."""
    pairs = list(zip(these, those, strict=True))
    same = [pair for pair in pairs if ids([pair[0]]) == ids([pair[1]])]
    assert len(same) >= len(pairs) - 1
    for mine, other in same:
        expected = [score for _, score in other]
        assert [score for _, score in mine] == pytest.approx(expected, rel=5e-4)


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("coverage_penalty", [0.0, 0.2])
def test_length_and_coverage_penalties(
    graphs: Graphs, peer: Any, beam_size: int, alpha: float, coverage_penalty: float
) -> None:
    asked: dict[str, Any] = {
        "beam_size": beam_size,
        "num_hypotheses": beam_size,
        "length_penalty": alpha,
        "coverage_penalty": coverage_penalty,
    }
    assert_same(ours(graphs, **asked), theirs(peer, **asked))


BANS: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # They don't count EOS.
    "least length": ({"min_length": 13}, {"min_decoding_length": 12}),
    **{f"no {size}-gram twice": ({"no_repeat_ngram_size": size},) * 2 for size in (1, 2, 3)},
}


@pytest.mark.parametrize("names", BANS)
@pytest.mark.parametrize(("beam_size", "least_same"), [(1, 40), (4, 34)])
def test_bans(graphs: Graphs, peer: Any, names: str, beam_size: int, least_same: int) -> None:
    asked_of_us, asked_of_them = BANS[names]
    mine = ids(ours(graphs, beam_size=beam_size, length_penalty=0, **asked_of_us))
    other = ids(theirs(peer, beam_size=beam_size, length_penalty=0, **asked_of_them))
    same = sum(found[0] == expected[0] for found, expected in zip(mine, other, strict=True))
    assert same >= least_same


@pytest.mark.parametrize(("beam_size", "least_same"), [(1, 40), (4, 34)])
def test_suppressed_sequences(graphs: Graphs, peer: Any, beam_size: int, least_same: int) -> None:
    said = [found[0][0] for found in ours(graphs, beam_size=1)]
    sequences = tuple(each[-2:] for each in said[:6]) + ((said[7][0],),)
    asked: dict[str, Any] = {
        "beam_size": beam_size,
        "length_penalty": 0,
        "suppress_sequences": sequences,
    }
    mine, other = ids(ours(graphs, **asked)), ids(theirs(peer, **asked))
    same = sum(found[0] == expected[0] for found, expected in zip(mine, other, strict=True))
    assert same >= least_same
    assert mine != ids(ours(graphs, beam_size=beam_size, length_penalty=0))


def test_a_repetition_penalty_that_forbids_every_repetition(graphs: Graphs, peer: Any) -> None:
    asked: dict[str, Any] = {"beam_size": 1, "length_penalty": 0, "repetition_penalty": 10.0}
    assert ids(ours(graphs, **asked)) == ids(theirs(peer, **asked))


@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_hard_prefix(graphs: Graphs, peer: Any, beam_size: int) -> None:
    asked: dict[str, Any] = {
        "beam_size": beam_size,
        "num_hypotheses": beam_size,
        "length_penalty": 0,
    }
    mine = [
        [
            (found.ids, found.score - float(found.token_log_probs[: len(PREFIX)].sum()))
            for found in hypotheses
        ]
        for hypotheses in our_hypotheses(graphs, prefix=PREFIX, **asked)
    ]
    assert_same(mine, theirs(peer, PREFIX, **asked))


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("beta", [0.1, 0.5, 0.9])
def test_a_biased_prefix(graphs: Graphs, peer: Any, beam_size: int, beta: float) -> None:
    asked: dict[str, Any] = {
        "beam_size": beam_size,
        "num_hypotheses": beam_size,
        "length_penalty": 0,
        "prefix_bias_beta": beta,
    }
    assert_same(ours(graphs, prefix=PREFIX, **asked), theirs(peer, PREFIX, **asked))


@pytest.mark.parametrize("prefix", [(), PREFIX[:2]])
@pytest.mark.parametrize("least", [0.0, 0.011])
def test_alternatives(graphs: Graphs, peer: Any, prefix: tuple[int, ...], least: float) -> None:
    mine = our_hypotheses(
        graphs,
        beam_size=4,
        num_hypotheses=4,
        prefix=prefix,
        return_alternatives=True,
        min_alternative_prob=least,
    )
    other = theirs(
        peer,
        prefix,
        beam_size=1,
        num_hypotheses=4,
        return_alternatives=True,
        min_alternative_expansion_prob=least,
    )
    found = [{each.ids for each in hypotheses} for hypotheses in mine]
    assert found == [set(each) for each in ids(other)]
