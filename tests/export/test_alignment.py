"""The layer that is returned is the one that looks at the word it translates."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
import torch

from export.alignment import (
    Agreement,
    AlignedPair,
    Reference,
    aligned_pairs,
    alignment_scores,
    by_agreement,
    by_shared_pieces,
    is_installed,
    references_of,
)
from export.alignment.attention import forced_attention
from service.decoding import score
from service.text import Token
from tests.tiny_bundle import random_sources, tiny_network
from training.data import Example, Pair
from training.model import Translator
from training.step_model import TorchStepModel
from training.transformer import DecoderLayer, TransformerConfig
from training.vocabulary import load_vocabulary

EXAMPLES = [Example(source, source) for source in random_sources(6, seed=1)]
CONFIG = TransformerConfig(
    vocabulary_size=512, model_size=32, num_heads=2, feed_forward_size=32, decoder_layers=3
)


@pytest.fixture
def looking() -> Translator:
    """A network whose layer 1 looks at the place that it writes at, and no other does."""
    torch.manual_seed(0)
    model = CONFIG.build().eval()
    identity = 5 * torch.eye(CONFIG.model_size)
    with torch.no_grad():
        model.embedding.weight.mul_(0.01)  # places are all that is left to compare
        for name, parameter in model.named_parameters():
            if "output_projection" in name:
                parameter.zero_()
        for index, layer in enumerate(model.decoder_layers):
            assert isinstance(layer, DecoderLayer)
            attention = layer.cross_attention
            attention.query_projection.weight.copy_(identity * (index == 1))
            attention.key_value_projection.weight[: CONFIG.model_size] = identity
    return model


def aligned(
    source: str, target: str, sure: set[tuple[int, int]], other: Iterable[tuple[int, int]] = ()
) -> AlignedPair:
    """A pair with a token for each word between spaces; other: links that are only possible."""
    reference = Reference(frozenset(sure), frozenset(sure.union(other)))
    return AlignedPair(Pair(source, target), tokens(source), tokens(target), reference)


def tokens(text: str) -> list[Token]:
    ends = [index for index, sign in enumerate(text + " ") if sign == " "]
    starts = [0, *[end + 1 for end in ends[:-1]]]
    return [
        Token(4 + index, text[start:end], start, end)
        for index, (start, end) in enumerate(zip(starts, ends, strict=True))
    ]


def test_the_layer_that_pays_shared_pieces_most_is_chosen(looking: Translator) -> None:
    first, same_place, last = alignment_scores(looking, EXAMPLES)
    assert by_shared_pieces(looking, EXAMPLES).layer == 1
    assert same_place > 3 * max(first, last)


def test_the_layer_that_agrees_with_the_aligner_is_chosen(looking: Translator) -> None:
    words = "un deux trois quatre cinq six"
    choice = by_agreement(looking, [aligned(words, words, {(i, i) for i in range(6)})])
    first, same_place, last = (layer["aer"] for layer in choice.report["layers"])
    assert choice.layer == 1
    assert same_place < min(first, last)


def test_without_shared_pieces_any_layer_will_do() -> None:
    model = CONFIG.build().eval()
    apart = [Example([4, 5, 3], [6, 7, 3])]
    assert alignment_scores(model, apart) == [0.0, 0.0, 0.0]
    assert by_shared_pieces(model, apart).layer == 0


@pytest.mark.parametrize("architecture", ["transformer", "bahdanau"])
def test_attention_of_all_heads_is_that_of_scoring(architecture: str) -> None:
    model = tiny_network(architecture)
    sources = [example.source_ids for example in EXAMPLES]
    scored = score(TorchStepModel(model), sources, [source[:-1] for source in sources])
    for weights, hypothesis in zip(forced_attention(model, EXAMPLES), scored, strict=True):
        assert hypothesis.attention is not None
        np.testing.assert_allclose(weights.mean(axis=0), hypothesis.attention, atol=1e-6)


def test_agreement_counts_links_as_och_and_ney_do() -> None:
    pair = aligned("a red car", "une voiture rouge", {(0, 0), (1, 2)}, {(2, 1)})
    looks = np.array([[0.9, 0, 0, 0.1], [0, 0, 1, 0], [0, 0, 1, 0]])  # rouge looks at the car
    found = pair.agreement(looks)
    assert found == Agreement(found=3, found_sure=1, found_possible=2, sure=2)
    assert (found.precision, found.recall) == (2 / 3, 1 / 2)
    assert found.error_rate == pytest.approx(1 - (1 + 2) / (3 + 2))
    assert (found + found).error_rate == pytest.approx(found.error_rate)


def test_a_token_over_two_words_has_the_links_of_both() -> None:
    pair = aligned("it is", "c'est", {(0, 0), (1, 2)})
    looks = np.array([[0.0, 1.0, 0.0]])  # all of `c'est` at `is`
    assert pair.agreement(looks) == Agreement(found=1, found_sure=1, found_possible=1, sure=2)


def test_pairs_that_are_blank_or_too_long_are_left_out(vocabulary: bytes) -> None:
    pairs = [Pair("a dog", "un chien"), Pair("a dog", " "), Pair("a dog " * 20, "un chien")]
    nothing = [Reference(frozenset(), frozenset())] * 3
    tokenizer = load_vocabulary(vocabulary)
    kept = aligned_pairs(pairs, nothing, tokenizer, max_tokens=(20, 20), max_pairs=3)
    assert [each.pair for each in kept] == pairs[:1]


def test_some_pairs_are_spread_over_all(vocabulary: bytes) -> None:
    pairs = [Pair("a dog " * number, "un chien") for number in range(1, 8)]
    nothing = [Reference(frozenset(), frozenset())] * 7
    kept = aligned_pairs(pairs, nothing, load_vocabulary(vocabulary), (99, 99), max_pairs=3)
    assert [each.pair for each in kept] == pairs[::3]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("0-0", "is not `0-0 1-2<TAB>0-0 1-2`"),
        ("0-0\tx-0", "is not `0-0 1-2<TAB>0-0 1-2`"),
        ("\t0-7", "has the links of another pair"),
        ("0-0\t1-1", "has the links of another pair"),
        ("0-0\t0-0\n0-0\t0-0", "has links of 2 pairs, and there are 1"),
    ],
)
def test_links_of_other_pairs_are_refused(line: str, fault: str, tmp_path: Path) -> None:
    links = tmp_path / "links.tsv"
    links.write_text(line)
    with pytest.raises(ValueError, match=fault):
        references_of([Pair("a dog", "un chien")], [], links)


@pytest.mark.skipif(not is_installed(), reason="needs eflomal, which the extra `align` installs")
def test_an_aligner_learns_which_words_belong_together_and_its_links_are_kept(
    tmp_path: Path,
) -> None:
    nouns = {"dog": "chien", "cat": "chat", "horse": "cheval", "bird": "oiseau", "Cow": "vache"}
    training = [Pair(f"{a} and {b}", f"{nouns[a]} et {nouns[b]}") for a in nouns for b in nouns]
    pair, links = Pair("dog and cow", "chien et Vache"), tmp_path / "links.tsv"
    (reference,) = references_of([pair], training * 10, links)
    assert reference.sure == {(0, 0), (1, 1), (2, 2)}
    assert references_of([pair], [], links) == [reference]
