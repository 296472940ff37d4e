"""The command line, from a checkpoint to everything one can do with its bundle."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from export.__main__ import main
from export.graphs import num_attention_layers
from service.bundle import read_bundle, write_bundle
from tests.corpus import ROOT
from tests.tiny_bundle import tiny_bundle
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
def links(tmp_path: Path) -> str:
    """Of the pairs: each first word comes from the first."""
    path = tmp_path / "links.tsv"
    path.write_text("0-0\t0-0\n" * len(PAIRS))
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


def status_of(arguments: list[str]) -> int:
    """The exit code, also of what the parser refuses."""
    try:
        return main(arguments)
    except SystemExit as exit:
        return int(exit.code or 0)


def test_a_checkpoint_becomes_a_bundle_that_verifies_and_rebuilds_itself(
    network: Translator,
    checkpoint: str,
    pairs: str,
    links: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bundle, rebuilt = str(tmp_path / "bundle"), str(tmp_path / "rebuilt")
    evidence = ["--valid", pairs, "--max-bleu-loss", "100"]
    others = ["--test", pairs, "--train", pairs, "--links", links]
    assert main(["bundle", checkpoint, bundle, *evidence, *others]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["scores"].keys() == {"int8"}
    assert len(report["alignment"]["layers"]) == num_attention_layers(network)
    assert main(["verify", bundle, "--json", *evidence]) == 0
    assert json.loads(capsys.readouterr().out)["int8"]["same_in_1_rows"] == 1
    assert main(["verify", bundle, "--quick", *evidence]) == 0
    rows = table_of(capsys.readouterr().out)
    assert {verdict for *_, limit, verdict in rows if limit} == {"ok"}
    assert [found for _, name, found, *_ in rows if name.startswith("alone")] == [
        "100.00% the same"
    ]
    assert main(["rebuild", bundle, rebuilt]) == 0
    manifest = read_bundle(Path(rebuilt)).manifest
    assert manifest.name == "tiny-en-fr" and manifest.version.startswith("3-")
    assert main(["inspect", rebuilt, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["operators"].keys() == {"fp32/encoder", "fp32/step"}


def test_a_checkpoint_becomes_a_bundle_of_every_precision(
    checkpoint: str, pairs: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = str(tmp_path / "bundle")
    evidence = ["--valid", pairs, "--max-bleu-loss", "100"]
    precisions = ["--precision", "int8", "fp16", "fp32"]
    assert main(["bundle", checkpoint, bundle, *evidence, "--test", pairs, *precisions]) == 0
    report = read_bundle(Path(bundle)).manifest.provenance["verification"]
    assert report["fp32"]["max_value_error"] < report["fp16"]["max_value_error"] < 0.05
    assert {report[p]["same_in_7_rows"] for p in ("int8", "fp16", "fp32")} == {1}
    capsys.readouterr()
    assert main(["verify", bundle, "--valid", pairs, "--max-bleu-loss", "-1"]) == 1
    output = capsys.readouterr()
    failed = [row[:2] for row in table_of(output.out) if row[-1] == "FAILED"]
    assert failed == [[p, f"beam {w}, BLEU"] for p in ("int8", "fp16") for w in (1, 4)]
    assert output.err.startswith("python -m export: int8: beam 1, BLEU: ")


def table_of(text: str) -> list[list[str]]:
    """The cells of a Markdown table, without its headings."""
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()[2:]]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (["--calibration-sentences=0"], "argument --calibration-sentences: 0 is not at least 1"),
        (["--max-source-tokens=0"], "argument --max-source-tokens: 0 is not at least 1"),
        (["--max-source-tokens=1"], "has at most 1 source and 256 target tokens; raise"),
        (["--sentences=0"], "argument --sentences: 0 is not at least 1"),
        (["--attention-layer=7"], "--attention-layer is 7; the network's are 0 to "),
        (["--valid={folder}/empty.tsv.gz"], "empty.tsv.gz is empty"),
        (["--test={folder}/nothing.tsv.gz"], "No such file or directory"),
    ],
)
def test_what_cannot_be_exported_is_said_in_one_line(
    arguments: list[str],
    fault: str,
    checkpoint: str,
    pairs: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "empty.tsv.gz").write_bytes(gzip.compress(b""))
    usual = ["bundle", checkpoint, str(tmp_path / "bundle"), "--valid", pairs, "--test", pairs]
    given = [argument.format(folder=tmp_path) for argument in arguments]
    assert status_of(usual + given) == 2
    lines = capsys.readouterr().err.splitlines()
    assert fault in lines[-1] and "Traceback" not in lines
    assert not (tmp_path / "bundle").exists()


def test_a_directory_that_exists_is_noticed_at_once(
    checkpoint: str, pairs: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evidence = ["--valid", pairs, "--test", pairs]
    assert status_of(["bundle", checkpoint, str(tmp_path), *evidence]) == 2
    assert "exists; remove it or choose another name" in capsys.readouterr().err


@pytest.mark.parametrize("architecture", ["transformer", "bahdanau"])
def test_a_table_compares_what_is_returned_with_every_layer_and_head(
    architecture: str,
    pairs: str,
    links: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    bundle = tiny_bundle(tmp_path / "bundle", architecture)
    assert main(["align", str(bundle.directory), "--test", pairs, "--links", links]) == 0
    _, _, *rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()]
    measures = {attention: numbers for _, attention, *numbers in rows}
    assert measures["returned, fp32"] == measures["layer 0 (the one returned)"]
    is_recurrent = architecture == "bahdanau"  # one layer with one head, or two with two
    assert len(measures) == (3 if is_recurrent else 2 + 2 * (1 + 2))


@pytest.mark.parametrize("command", ["inspect", "rebuild"])
def test_a_signed_file_that_is_no_graph_is_named(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = tiny_bundle(tmp_path / "whole", "transformer")
    files = {name: (whole.directory / name).read_bytes() for name in whole.manifest.files}
    broken = tmp_path / "broken"
    write_bundle(broken, whole.manifest, files | {"fp32/step.onnx": b"hello"})
    arguments = [command, str(broken), *([str(tmp_path / "new")] * (command == "rebuild"))]
    assert status_of(arguments) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert "fp32/step.onnx is no ONNX graph" in line


def test_a_fault_is_one_line_and_a_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(tmp_path)]) == 1
    assert "bundle.json is missing" in capsys.readouterr().err
