"""BLEU by hand, references by source, and the torch adapter of the search."""

import gzip
import math
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from service.decoding import DecodingOptions, decode, score
from tests.toys import random_sources
from training.data import Example, collate
from training.evaluate import bleu, corpus_bleu, load_eval_set, mean_loss
from training.model import Translator, build_model
from training.step_model import TorchStepModel
from training.vocabulary import EOS_ID

TRANSFORMER = {
    "architecture": "transformer",
    "vocabulary_size": 23,
    "model_size": 16,
    "num_heads": 2,
    "feed_forward_size": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
}
BAHDANAU = {
    "architecture": "bahdanau",
    "vocabulary_size": 23,
    "embedding_size": 16,
    "encoder_size": 16,
    "decoder_size": 32,
    "attention_size": 16,
}
short_sources = partial(
    random_sources, seed=1, lengths=range(1, 9), words=range(EOS_ID + 1, 23), eos_id=EOS_ID
)


@pytest.fixture(params=[TRANSFORMER, BAHDANAU], ids=["transformer", "bahdanau"])
def model(request: pytest.FixtureRequest) -> Translator:
    torch.manual_seed(5)
    network = build_model(request.param)
    with torch.no_grad():
        network.embedding.weight.mul_(3)  # fresh weights predict nearly the same everywhere
    return network.eval()


def test_textbook_bleu_of_a_hand_computed_pair() -> None:
    # 1-grams 4 of 5, 2-grams 3 of 4, 3-grams 1 of 3; the label has 6 tokens.
    prediction, label = "A B B C D".split(), "A B C D E F".split()
    one, two, three = (4 / 5) ** (1 / 2), (3 / 4) ** (1 / 4), (1 / 3) ** (1 / 8)
    assert bleu(prediction, label, 1) == pytest.approx(math.exp(1 - 6 / 5) * one)
    assert bleu(prediction, label, 3) == pytest.approx(math.exp(1 - 6 / 5) * one * two * three)


def test_textbook_bleu_at_its_ends() -> None:
    assert bleu("a b c".split(), "a b c".split(), 3) == 1.0
    assert bleu("x y".split(), "a b c".split(), 2) == 0.0
    assert bleu([], ["a"], 2) == 0.0
    assert bleu("a b c d".split(), "a b".split(), 1) == pytest.approx(math.sqrt(2 / 4))


def test_textbook_bleu_of_a_short_prediction_uses_the_lengths_that_it_has() -> None:
    assert bleu(["a"], ["a", "b"], 4) == pytest.approx(math.exp(-1))


def test_textbook_bleu_needs_a_positive_k() -> None:
    with pytest.raises(ValueError, match="k is 0"):
        bleu(["a"], ["a"], 0)


def test_references_are_grouped_by_distinct_source(tmp_path: Path) -> None:
    path = tmp_path / "set.tsv.gz"
    path.write_bytes(gzip.compress(b"Run!\tCours !\nGo.\tVa.\nRun!\tCourez !\nRun!\tCours !\n"))
    assert load_eval_set(path) == (["Run!", "Go."], [["Cours !", "Courez !"], ["Va."]])
    sources, references = load_eval_set(path, source_column=1)
    assert (sources, references[0]) == (["Cours !", "Va.", "Courez !"], ["Run!"])


def test_any_reference_may_match_and_the_signature_names_the_tokens() -> None:
    references = [["Le chat dort ici ."], ["Il court vite .", "Il court très vite ."]]
    score = corpus_bleu(["Le chat dort ici .", "Il court très vite ."], references)
    assert score.bleu == pytest.approx(100)
    assert "tok:13a" in score.signature and "case:mixed" in score.signature


def test_greedy_search_over_the_adapter_follows_the_training_forward(model: Translator) -> None:
    """Each token that the search chose is the best one given the tokens before it."""
    sources = short_sources(5)
    for source, (hypothesis,) in zip(
        sources, decode(TorchStepModel(model), sources, DecodingOptions(max_length=12)), strict=True
    ):
        batch = collate([Example(source, [*hypothesis.ids, EOS_ID])])
        logits = model(batch.source_ids, batch.source_lengths, batch.target_ids)[0]
        assert logits.argmax(-1).tolist()[: len(hypothesis.ids)] == list(hypothesis.ids)


def test_a_sentence_alone_and_in_flight_is_translated_alike(model: Translator) -> None:
    sources = short_sources(9)
    options = DecodingOptions(beam_size=3, num_hypotheses=3, max_length=12)
    together = decode(TorchStepModel(model), sources, options, max_rows=9)
    for source, hypotheses in zip(sources, together, strict=True):
        (alone,) = decode(TorchStepModel(model), [source], options)
        assert [h.ids for h in hypotheses] == [h.ids for h in alone]
        assert [h.log_prob for h in hypotheses] == pytest.approx(
            [h.log_prob for h in alone], abs=1e-4
        )


def test_forced_scores_add_up_to_the_validation_loss(model: Translator) -> None:
    sources, targets = short_sources(4), [source[:-1] for source in short_sources(4)]
    hypotheses = score(TorchStepModel(model), sources, targets)
    batch = collate([Example(s, [*t, EOS_ID]) for s, t in zip(sources, targets, strict=True)])
    num_tokens = sum(len(target) + 1 for target in targets)
    total = sum(hypothesis.log_prob for hypothesis in hypotheses)
    assert mean_loss(model, [batch]) == pytest.approx(-total / num_tokens, rel=1e-5)


def test_attention_of_a_hypothesis_sums_to_one_over_its_source(model: Translator) -> None:
    sources = short_sources(4)
    options = DecodingOptions(beam_size=2, attention=True, max_length=8)
    for source, hypotheses in zip(
        sources, decode(TorchStepModel(model), sources, options), strict=True
    ):
        attention = hypotheses[0].attention
        assert attention is not None and attention.shape[1] == len(source)
        assert np.allclose(attention.sum(-1), 1, atol=1e-5)
