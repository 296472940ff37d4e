"""The whole path as a user walks it: commands, files, a server process, a socket."""

import gzip
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import product

import pytest

from service.client import Client
from service.pb import translation_pb2 as pb
from tests.corpus import ROOT
from tests.running_server import RunningServer, running_server

SUBJECTS = {"The cat": "Le chat", "The dog": "Le chien", "The king": "Le roi", "The sea": "La mer"}
VERBS = {"sees": "voit", "loves": "aime", "knows": "connaît"}
OBJECTS = {"the house": "la maison", "the tree": "l'arbre", "the bread": "le pain", "me": "moi"}
PAIRS = {
    f"{subject} {verb} {thing}.": f"{SUBJECTS[subject]} {VERBS[verb]} {OBJECTS[thing]}."
    for subject, verb, thing in product(SUBJECTS, VERBS, OBJECTS)
}
CONFIG = ROOT / "training" / "configs" / "transformer-en-fr.toml"
SMALLER = {
    "size = 8000": "size = 400",
    "character_coverage = 0.9999": "character_coverage = 1.0",
    "model_size = 256": "model_size = 32",
    "feed_forward_size = 1024": "feed_forward_size = 64",
    "encoder_layers = 4": "encoder_layers = 1",
    "decoder_layers = 2": "decoder_layers = 1",
    "dropout = 0.1": "dropout = 0.0",
    "peak_rate = 1.2e-3": "peak_rate = 1e-2",
    "muon_peak_rate = 2e-3": "muon_peak_rate = 2e-2",
    "warmup_steps = 200": "warmup_steps = 10",
    "ema_decay = 0.999": "ema_decay = 0.9",
}


def run(*arguments: str) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    result = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """Trained on four dozen sentences, exported in int8, and served."""
    folder = tmp_path_factory.mktemp("path")
    lines = "\n".join(f"{source}\t{target}" for source, target in PAIRS.items())
    for split in ("train", "valid", "test"):
        (folder / f"{split}.tsv.gz").write_bytes(gzip.compress(lines.encode()))
    text = CONFIG.read_text()
    for old, new in SMALLER.items():
        assert old in text, old
        text = text.replace(old, new)
    config = folder / "small.toml"
    config.write_text(text)
    training = ["--directory", str(folder / "run"), "--data-dir", str(folder)]
    run("training", "train", str(config), *training, "--total-steps", "80")
    splits = ["--valid", str(folder / "valid.tsv.gz"), "--test", str(folder / "test.tsv.gz")]
    bundle = str(folder / "models" / "small")
    run("export", "bundle", str(folder / "run" / "best.pt"), bundle, "--name", "small", *splits)
    with running_server(folder / "models") as server:
        yield server


def test_what_was_trained_is_what_is_served(server: RunningServer) -> None:
    with Client(server.address) as client:
        response = client.translate(pb.TranslateRequest(contents=list(PAIRS)))
    found = [translation.translated_text for translation in response.translations]
    right = sum(text == expected for text, expected in zip(found, PAIRS.values(), strict=True))
    assert right >= 0.9 * len(PAIRS), found


def test_attention_comes_with_spans_into_both_texts(server: RunningServer) -> None:
    text = "  The king loves the bread.\n"
    request = pb.TranslateRequest(contents=[text], include_attention=True)
    with Client(server.address) as client:
        (translation,) = client.translate(request).translations
    (sentence,) = translation.sentences
    attention = sentence.hypotheses[0].attention
    words = [text[token.begin : token.end] for token in attention.source_tokens]
    assert "".join("".join(words).split()) == "".join(text.split())
    answer = translation.translated_text
    words = [answer[token.begin : token.end] for token in attention.target_tokens]
    assert "".join("".join(words).split()) == "".join(answer.split())
    width = attention.num_sources
    assert len(attention.weights) == attention.num_targets * width
    for start in range(0, len(attention.weights), width):
        assert sum(attention.weights[start : start + width]) == pytest.approx(1, abs=1e-4)


def test_the_metrics_count_what_was_answered(server: RunningServer) -> None:
    with Client(server.address) as client:
        client.translate(pb.TranslateRequest(contents=["The cat sees me.", ""]))
    handled = 'grpc_server_handled_total{grpc_code="OK",grpc_method="Translate"'
    assert handled in server.metrics()
