"""What a bundle says of itself: its parts in tables, and its card."""

from dataclasses import replace
from pathlib import Path

import pytest

from export.__main__ import main
from export.inspection import card, parts_of
from service.bundle import Bundle, read_bundle
from tests.corpus import ROOT
from training.model import Translator

SHIPPED = sorted(path.parent for path in (ROOT / "models").glob("*/bundle.json"))


def test_every_byte_of_the_weights_belongs_to_a_module(both: Bundle, network: Translator) -> None:
    parts = parts_of(both)
    modules = {name.split(".")[0] for name in network.state_dict()}
    for graph, weights in parts.weights.items():
        file = both.directory / f"{graph}.onnx"
        assert 0 < sum(weights.values()) < file.stat().st_size
        of_network = sum(count for name, count in weights.items() if name in modules)
        assert of_network > 0.8 * sum(weights.values())
    assert sum(parts.weights["int8/step"].values()) < sum(parts.weights["fp32/step"].values()) / 2


def test_nodes_in_branches_are_counted_too(listed: Bundle) -> None:
    operators = parts_of(listed).operators["int8/step"]
    assert operators["If"] == 1 and operators["LogSoftmax"] == 2


def test_tables_say_what_a_bundle_consists_of(
    both: Bundle, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["inspect", str(both.directory)]) == 0
    text = capsys.readouterr().out
    first, *_ = text.splitlines()
    assert first.startswith("tiny 1: ") and "en to fr" in first and "fp32, int8" in first
    for heading in ("| file", "| operator", "| bytes of weights"):
        assert heading in text
    for name, record in both.manifest.files.items():
        [line] = [line for line in text.splitlines() if line.startswith(f"| {name} ")]
        assert f"{record.size:,}" in line


def test_a_card_says_when_nothing_is_known(both: Bundle) -> None:
    bare = card(replace(both.manifest, provenance={}))
    assert "Not scored." in bare and "Not verified." in bare
    assert "| licence | not recorded" in " ".join(bare.split())


@pytest.mark.parametrize("directory", SHIPPED, ids=lambda path: path.name)
def test_the_card_of_a_shipped_bundle_says_what_its_manifest_and_the_readme_say(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = read_bundle(directory).manifest
    assert main(["card", str(directory)]) == 0
    text = capsys.readouterr().out
    provenance = manifest.provenance
    for precision, by_beam in provenance["scores"].items():
        assert text.count(f"| {precision} ") >= len(by_beam)
        assert all(f"{score['bleu']:.2f}" in text for score in by_beam.values())
    assert provenance["licence"] in text and provenance["attribution"] in text
    assert f"{provenance['verification']['sentences']} validation sentences" in text
    readme = (ROOT / "models" / "README.md").read_text(encoding="utf-8")
    assert f"`{manifest.name}`" in readme and provenance["attribution"] in readme
