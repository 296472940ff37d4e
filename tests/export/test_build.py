"""Bundles are written once they are proven, and can be turned back into networks."""

import copy
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

from export.assemble import Description, graph_files
from export.build import Evidence, build_bundle, content_version
from export.graphs import weights_of
from export.rebuild import network_of, rebuild
from export.verify import EvalSet, ParityError, Tolerances
from service.bundle import Bundle, read_bundle
from service.decoding import DecodingOptions, decode
from service.session import Graphs, OnnxModel
from tests.corpus import ROOT
from tests.tiny_bundle import random_sources
from training.checkpoint import TrainedTranslator
from training.config import TrainingConfig, load_config
from training.data import Example
from training.model import Translator
from training.step_model import TorchStepModel

CONFIG = load_config(ROOT / "training" / "configs" / "transformer-en-fr.toml")
TEXTS = ["A man in a shirt", "Two women walk", "the dog", "lazy fox jumps over the street"]
EVAL_SET = EvalSet(TEXTS, [[text.upper()] for text in TEXTS])
ANY_BLEU = Tolerances(bleu=100)


@pytest.fixture(scope="module")
def trained(network: Translator, vocabulary: bytes) -> TrainedTranslator:
    return TrainedTranslator(network, vocabulary, CONFIG, step=7, validation_bleu=0.0)


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    sources = random_sources(8)
    examples = [Example(s, t) for s, t in zip(sources, sources[::-1], strict=True)]
    return Evidence(examples, EVAL_SET, EVAL_SET)


def test_a_proven_bundle_says_what_it_is_and_what_was_checked(
    trained: TrainedTranslator, evidence: Evidence, description: Description, tmp_path: Path
) -> None:
    built = build_bundle(trained, tmp_path / "tiny", description, ["int8"], evidence, ANY_BLEU)
    assert built == read_bundle(tmp_path / "tiny")
    provenance = built.manifest.provenance
    assert built.manifest.precisions == ("int8",)
    assert provenance["licence"] == "CC-BY-2.0-FR" and provenance["steps"] == 7
    assert TrainingConfig.from_dict(provenance["training"]) == CONFIG
    report = provenance["verification"]
    assert report["sentences"] == len(TEXTS)
    assert report["fp32"]["max_value_error"] < 1e-3
    assert report["int8"]["same_in_1_rows"] == 1
    assert "tok:13a" in provenance["scores"]["int8"]["beam_4"]["signature"]
    assert [path.name for path in tmp_path.iterdir()] == ["tiny"]


def test_nothing_is_written_when_a_graph_is_not_its_network(
    trained: TrainedTranslator, evidence: Evidence, description: Description, tmp_path: Path
) -> None:
    impossible = Tolerances(value=0.0, bleu=-100)
    with pytest.raises(ParityError) as refusal:
        build_bundle(trained, tmp_path / "tiny", description, ["int8"], evidence, impossible)
    assert [fault.split(":")[0] for fault in refusal.value.faults] == ["fp32", "int8", "int8"]
    assert not list(tmp_path.iterdir())


def test_a_version_is_that_of_the_weights_and_everything_else_that_translates(
    network: Translator, description: Description
) -> None:
    options = description.graph_options
    files = graph_files(network, ["fp32"], options, {})
    same = graph_files(copy.deepcopy(network), ["fp32"], options, {})
    other = copy.deepcopy(network)
    with torch.no_grad():
        other.embedding.weight[-1, -1] += 1e-3
    version = content_version(files, 7)
    assert re.fullmatch("7-[0-9a-f]{8}", version)
    assert content_version(same, 7) == version
    assert content_version(graph_files(other, ["fp32"], options, {}), 7) != version
    assert content_version(files | {"source.model": b"other pieces"}, 7) != version


def test_a_network_comes_back_from_its_float32_bundle(both: Bundle, network: Translator) -> None:
    rebuilt = network_of(both)
    for name, parameter in network.state_dict().items():
        torch.testing.assert_close(rebuilt.state_dict()[name], parameter, rtol=0, atol=0)


def test_a_network_of_an_int8_bundle_has_its_dequantised_weights(
    both: Bundle, network: Translator
) -> None:
    rebuilt = network_of(_int8_only(both)).state_dict()
    for name, parameter in network.state_dict().items():
        step = float(parameter.abs().max()) / 127
        torch.testing.assert_close(rebuilt[name], parameter, rtol=0, atol=0.51 * step)
    assert not torch.equal(rebuilt["embedding.weight"], network.state_dict()["embedding.weight"])


def test_the_float32_graphs_of_a_bundle_are_its_network(both: Bundle, tmp_path: Path) -> None:
    int8 = _int8_only(both)
    again = rebuild(int8, tmp_path / "again")
    assert again.manifest.precisions == ("fp32",)
    sources, options = random_sources(6), DecodingOptions(beam_size=2, max_length=30)
    expected = decode(TorchStepModel(network_of(int8)), sources, options)
    found = decode(OnnxModel(Graphs.load(again, "fp32"), 16), sources, options)
    assert [best.ids for best, *_ in found] == [best.ids for best, *_ in expected]


def test_tied_tables_hold_the_same_integers(both: Bundle) -> None:
    encoder, step = (
        weights_of(onnx.load(both.graph_path("int8", graph))) for graph in ("encoder", "step")
    )
    np.testing.assert_array_equal(encoder["embedding.lookup"], step["embedding.lookup"])
    lookup = step["embedding.lookup"].astype(np.int16) - 128
    np.testing.assert_array_equal(lookup, step["embedding.weight"].T)


def _int8_only(bundle: Bundle) -> Bundle:
    return replace(bundle, manifest=replace(bundle.manifest, precisions=("int8",)))
