"""What section 3 of the chapter compares: two networks that differ in attention alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from docs.chapter.comparison import WITH, WITHOUT, configuration, learners, train
from docs.chapter.figure import Run
from docs.chapter.sentences import SPLITS, WRITTEN, is_long, subset, write_sentences
from docs.chapter.seq2seq import PHRASES, phrase_scores, scores_by_length
from tests.corpus import TATOEBA, needs_tatoeba
from training.data import read_pairs

QUICK = Run(quick=True)


@pytest.fixture(autouse=True)
def as_many_threads_as_before() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_the_configurations_differ_in_attention_alone(tmp_path: Path) -> None:
    plain, attentive = (configuration(QUICK, tmp_path, name).to_dict() for name in (WITHOUT, WITH))
    assert {key for key in plain if plain[key] != attentive[key]} == {"name", "model"}
    assert plain["model"] | {"attention": True} == attentive["model"]


def test_both_have_the_same_number_of_weights() -> None:
    sizes = [sum(p.numel() for p in found.model.parameters()) for found in learners(QUICK).values()]
    assert sizes[0] == sizes[1]


def test_a_run_that_has_ended_is_not_repeated_unless_its_configuration_changes(
    tmp_path: Path,
) -> None:
    write_sentences(None, tmp_path / "sentences")
    config = configuration(QUICK, tmp_path, WITH)
    curves = [train(config, tmp_path / "run").curves for _ in range(2)]
    assert curves[0] == curves[1]
    other = configuration(QUICK, tmp_path, WITHOUT)
    assert not train(other, tmp_path / "run").model.config.attention


def test_every_source_is_in_one_group_of_lengths() -> None:
    groups = scores_by_length(learners(QUICK), num_sources=30)
    assert sum(group.num_sources for group in groups) == 30
    assert all(0 <= score <= 100 for group in groups for score in group.scores.values())


def test_the_answers_of_the_textbook_score_one() -> None:
    assert phrase_scores(list(PHRASES.values())) == [1.0] * len(PHRASES)
    assert phrase_scores(["Va", "Perdu.", "Je suis chez", "Il était calme."]) != [1.0] * 4


def test_without_the_corpus_the_written_pairs_are_trained_on(tmp_path: Path) -> None:
    write_sentences(None, tmp_path)
    written = [line.split("\t") for line in WRITTEN.read_text(encoding="utf-8").splitlines()]
    for split in SPLITS:
        pairs = read_pairs(tmp_path / f"{split}.tsv.gz")
        assert [[pair.source, pair.target] for pair in pairs] == written
    assert all([source, target] in written for source, target in PHRASES.items())


@needs_tatoeba
def test_nothing_that_is_tested_on_was_trained_on() -> None:
    trained, _, tested = subset(TATOEBA)
    assert not {pair.source for pair in trained} & {pair.source for pair in tested}
    assert not {pair.target for pair in trained} & {pair.target for pair in tested}
    assert sum(is_long(pair.source) for pair in tested) > 1000
