"""float16 graphs on a CUDA device: the CPU's translations, ragged batches, a cap on memory.

`make test-gpu` runs these; without a device they are skipped, and say why it can't be had.
"""

import os
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from export.rebuild import GRAPHS
from export.verify.values import value_error
from service.bundle import Bundle
from service.decoding import DecodingOptions, Hypothesis, decode
from service.errors import ConfigError
from service.session import Graphs, OnnxModel, device_fault, prove
from service.session.devices import PROVIDERS, prepare
from tests.tiny_bundle import LIMITS, network_bundle, random_sources, tiny_network
from training.model import Translator

_FAULT = device_fault("cuda")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(_FAULT is not None, reason=str(_FAULT))]

SOURCES = random_sources(32, seed=3)
TOLERANCE = 0.05
MEGABYTE = 2**20


@pytest.fixture(scope="module", params=["transformer", "bahdanau"])
def network(request: pytest.FixtureRequest) -> Translator:
    return tiny_network(request.param)


@pytest.fixture(scope="module")
def halved(network: Translator, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    directory: Path = tmp_path_factory.mktemp("bundles") / "halved"
    return network_bundle(directory, network, LIMITS, "fp16")


@pytest.fixture(scope="module")
def on_device(halved: Bundle) -> Graphs:
    return Graphs.load(halved, "fp16", device="cuda")


def translations(graphs: Graphs, rows: int, beam_size: int = 1) -> list[Hypothesis]:
    options = DecodingOptions(beam_size=beam_size, max_length=30, attention=True)
    model = OnnxModel(graphs, rows)
    return [best for best, *_ in decode(model, SOURCES, options, max_rows=rows)]


def same_share(these: list[Hypothesis], those: list[Hypothesis]) -> float:
    return float(np.mean([a.ids == b.ids for a, b in zip(these, those, strict=True)]))


def test_the_graphs_are_those_of_the_manifest_and_run_on_the_device(on_device: Graphs) -> None:
    prove(on_device)  # raises BundleError if they aren't
    for session in (on_device.encoder, on_device.step):
        assert session.get_providers() == PROVIDERS["cuda"]


def test_every_value_is_that_of_the_network(network: Translator, on_device: Graphs) -> None:
    heads = slice(0, on_device.manifest.attention.num_heads)
    assert value_error(network, on_device, heads) < TOLERANCE


@pytest.mark.parametrize("beam_size", [1, 4])
def test_translations_and_attention_are_those_of_the_cpu(
    halved: Bundle, on_device: Graphs, beam_size: int
) -> None:
    expected = translations(Graphs.load(halved, "fp16"), 64, beam_size)
    found = translations(on_device, 64, beam_size)
    assert same_share(expected, found) >= 7 / 8
    for theirs, ours in zip(expected, found, strict=True):
        if theirs.ids == ours.ids:
            assert theirs.attention is not None and ours.attention is not None
            np.testing.assert_allclose(ours.attention, theirs.attention, atol=0.01)


def test_ragged_neighbours_change_no_more_than_ties(on_device: Graphs) -> None:
    together = translations(on_device, 64)
    for rows in (1, 5):
        assert same_share(together, translations(on_device, rows)) >= 7 / 8


@pytest.mark.parametrize("graph", GRAPHS)
def test_nothing_is_copied_between_host_and_device(
    halved: Bundle, graph: str, tmp_path: Path
) -> None:
    prepare("cuda")
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    path = halved.directory / "fp16" / f"{graph}.onnx"
    onnxruntime.InferenceSession(os.fspath(path), options, providers=PROVIDERS["cuda"])
    optimized = onnx.load(options.optimized_model_filepath)
    assert not [node.name for node in optimized.graph.node if node.op_type.startswith("Memcpy")]


def test_a_cap_on_memory_holds(halved: Bundle) -> None:
    capped = Graphs.load(halved, "fp16", device="cuda", max_device_bytes=64 * MEGABYTE)
    assert len(translations(capped, 16)) == len(SOURCES)
    with pytest.raises(ConfigError, match="can't be loaded"):
        Graphs.load(halved, "fp16", device="cuda", max_device_bytes=1)
