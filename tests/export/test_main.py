"""The command line, from a checkpoint to everything one can do with its bundle."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from export.__main__ import main
from service.bundle import read_bundle
from tests.corpus import ROOT
from training.checkpoint import bytes_to_tensor, save_checkpoint
from training.config import load_config
from training.model import Translator

PAIRS = ["a dog\tun chien", "the fox\tle renard", "Two women walk\tDeux femmes", "dogs\tchiens"]


@pytest.fixture
def pairs(tmp_path: Path) -> str:
    path = tmp_path / "pairs.tsv.gz"
    path.write_bytes(gzip.compress("\n".join(PAIRS).encode()))
    return str(path)


@pytest.fixture
def checkpoint(network: Translator, vocabulary: bytes, tmp_path: Path) -> str:
    config = load_config(ROOT / "training" / "configs" / "transformer-en-fr.toml")
    path = tmp_path / "best.pt"
    state = {
        "config": replace(config, name="tiny-en-fr").to_dict(),
        "model_config": network.config_dict(),
        "vocabulary": bytes_to_tensor(vocabulary),
        "step": 3,
        "best_bleu": 0.0,
        "average": network.state_dict(),
    }
    save_checkpoint(path, state)
    return str(path)


def test_a_checkpoint_becomes_a_bundle_that_verifies_and_rebuilds_itself(
    checkpoint: str, pairs: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle, rebuilt = str(tmp_path / "bundle"), str(tmp_path / "rebuilt")
    evidence = ["--valid", pairs, "--max-bleu-loss", "100"]
    assert main(["bundle", checkpoint, bundle, *evidence, "--test", pairs, "--train", pairs]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["scores"].keys() == {"int8"}
    assert main(["verify", bundle, *evidence]) == 0
    assert json.loads(capsys.readouterr().out)["int8"]["same_in_1_rows"] == 1
    assert main(["rebuild", bundle, rebuilt]) == 0
    manifest = read_bundle(Path(rebuilt)).manifest
    assert manifest.name == "tiny-en-fr" and manifest.version.startswith("3-")
    assert main(["inspect", rebuilt]) == 0
    assert json.loads(capsys.readouterr().out)["operators"].keys() == {"fp32/encoder", "fp32/step"}


def test_a_fault_is_one_line_and_a_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(tmp_path)]) == 1
    assert "bundle.json is missing" in capsys.readouterr().err
