"""Distillation on a tiny teacher: what is translated, what is left out, and the file it makes."""

import gzip
from dataclasses import replace
from pathlib import Path

import pytest

from service.decoding import DecodingOptions, FinishReason, decode
from tests.corpus import SENTENCES
from tests.tiny_bundle import TEXT, VOCABULARY_SIZE, tiny_network
from training.__main__ import main
from training.checkpoint import TrainedTranslator, bytes_to_tensor, save_checkpoint
from training.config import load_config
from training.data import Pair, read_pairs
from training.distill import distill, write_pairs
from training.evaluate import translate
from training.step_model import TorchStepModel
from training.vocabulary import EOS_ID, load_vocabulary, train_vocabulary

CONFIG = load_config(Path(__file__).parents[2] / "training/configs/transformer-en-fr.toml")
GREEDY = DecodingOptions()
NO_REFERENCES: list[list[str]] = [[]] * len(SENTENCES)


@pytest.fixture(params=["transformer", "bahdanau"])
def teacher(request: pytest.FixtureRequest) -> TrainedTranslator:
    return TrainedTranslator(
        model=tiny_network(request.param),
        vocabulary=train_vocabulary(TEXT * 25, VOCABULARY_SIZE, 1.0),
        config=CONFIG,
        step=1,
        validation_bleu=0.0,
    )


def test_a_teacher_says_in_training_what_it_says_elsewhere(teacher: TrainedTranslator) -> None:
    exact = replace(CONFIG, run=replace(CONFIG.run, autocast=False))
    pairs = distill(replace(teacher, config=exact), SENTENCES, NO_REFERENCES, GREEDY)
    said = [pair.source for pair in pairs]
    assert said == [source for source in SENTENCES if source in said]
    tokenizer = load_vocabulary(teacher.vocabulary)
    assert pairs
    expected = translate(teacher.model, tokenizer, said, GREEDY)
    assert [pair.target for pair in pairs] == [" ".join(text.split()) for text in expected]


def test_what_ran_into_the_length_limit_is_left_out(teacher: TrainedTranslator) -> None:
    assert distill(teacher, SENTENCES, NO_REFERENCES, DecodingOptions(max_length=1)) == []


def test_sources_longer_than_the_teacher_knows_or_empty_are_left_out(
    teacher: TrainedTranslator,
) -> None:
    sources = ["", " ".join(SENTENCES), "Go."]
    pairs = distill(teacher, sources, NO_REFERENCES, GREEDY)
    assert {pair.source for pair in pairs} <= {"Go."}


def test_of_several_translations_the_one_closest_to_the_references_is_taken(
    teacher: TrainedTranslator,
) -> None:
    exact = replace(teacher, config=replace(CONFIG, run=replace(CONFIG.run, autocast=False)))
    source = "Please close the window before you leave the house."
    search = DecodingOptions(beam_size=4, num_hypotheses=4)
    tokenizer = load_vocabulary(teacher.vocabulary)
    ids = [*tokenizer.encode(source), EOS_ID]
    found = decode(TorchStepModel(teacher.model), [ids], search, max_rows=4)[0]
    texts = [" ".join(tokenizer.decode(hypothesis.ids).split()) for hypothesis in found]
    ended = [
        text
        for text, hypothesis in zip(texts, found, strict=True)
        if text and hypothesis.finish_reason is FinishReason.END_OF_SENTENCE
    ]
    [best, *others] = dict.fromkeys(ended)
    assert others
    for text in (best, *others):
        assert distill(exact, [source], [[text]], search) == [Pair(source, text)]


@pytest.mark.parametrize("source_column", [0, 1])
def test_a_written_file_reads_back_and_is_the_same_every_time(
    tmp_path: Path, source_column: int
) -> None:
    pairs = [Pair("Go.", "Va !"), Pair("naïve", "naïf")]
    paths = [tmp_path / "runs" / name for name in ("one.tsv.gz", "other.tsv.gz")]
    for path in paths:
        write_pairs(path, pairs, source_column)
        assert read_pairs(path, source_column) == pairs
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_the_command_translates_the_distinct_sources_of_the_training_file(
    teacher: TrainedTranslator, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = "".join(f"{source}\t{target}\n" for source in SENTENCES[:6] for target in "ab")
    (tmp_path / CONFIG.data.train).write_bytes(gzip.compress(corpus.encode()))
    checkpoint = {
        "model_config": teacher.model.config_dict(),
        "average": teacher.model.state_dict(),
        "vocabulary": bytes_to_tensor(teacher.vocabulary),
        "config": CONFIG.to_dict(),
        "step": 1,
        "best_bleu": 0.0,
    }
    save_checkpoint(tmp_path / "best.pt", checkpoint)
    output = tmp_path / "distilled.tsv.gz"
    arguments = ["distill", str(tmp_path / "best.pt"), str(output), "--beam-size", "1"]
    assert main([*arguments, "--data-dir", str(tmp_path)]) == 0
    pairs = read_pairs(output)
    assert pairs == distill(teacher, SENTENCES[:6], NO_REFERENCES, GREEDY)
    assert f"{len(pairs)} of 6 sources" in capsys.readouterr().out
