"""Bundles that are signed as they should be and can't serve: refused, with the graph's name."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from service.bundle import Bundle, Limits, Manifest, write_bundle
from service.bundle.manifest import DTYPES
from service.decoding import DecodingOptions
from service.engine import load_engine
from service.errors import BundleError
from tests.tiny_bundle import LIMITS, tiny_bundle
from training.vocabulary import EOS_ID

ENCODER, STEP = "fp32/encoder.onnx", "fp32/step.onnx"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return tiny_bundle(tmp_path_factory.mktemp("whole") / "bundle", "transformer")


def spoilt(bundle: Bundle, directory: Path, manifest: Manifest, **changes: bytes) -> Bundle:
    """The bundle with another manifest and other graphs, all sizes and sums right."""
    graphs = {"encoder": ENCODER, "step": STEP}
    files = {name: (bundle.directory / name).read_bytes() for name in manifest.files}
    files |= {graphs[graph]: content for graph, content in changes.items()}
    return write_bundle(directory, manifest, files)


def the_faults(bundle: Bundle) -> str:
    with pytest.raises(BundleError) as caught:
        load_engine(bundle, precision="fp32", workers=1)
    return str(caught.value)


def test_graphs_that_are_what_the_manifest_says_serve(whole: Bundle) -> None:
    engine = load_engine(whole, precision="fp32", workers=1)
    try:
        (future,) = engine.submit_all([[5, 6, EOS_ID]], DecodingOptions(max_length=4))
        (best,) = future.result()
    finally:
        engine.close()
    assert 1 <= len(best.token_log_probs) <= 4


@pytest.mark.parametrize("dtype", sorted({*DTYPES} - {"float32"}))
def test_every_type_that_a_manifest_may_name_is_told_from_that_of_the_graph(
    whole: Bundle, tmp_path: Path, dtype: str
) -> None:
    first, *others = whole.manifest.memory
    manifest = replace(whole.manifest, memory=(replace(first, dtype=dtype), *others))
    faults = the_faults(spoilt(whole, tmp_path / "bundle", manifest))
    assert f"{first.name!r} as tensor(float)" in faults
    assert f"expected tensor({dtype})" in faults


@pytest.mark.parametrize("graph", ["encoder", "step"])
def test_a_file_that_is_no_graph_is_named(whole: Bundle, tmp_path: Path, graph: str) -> None:
    content = (whole.directory / f"fp32/{graph}.onnx").read_bytes()
    for number, broken in enumerate((b"hello", content[:-100])):
        bundle = spoilt(whole, tmp_path / str(number), whole.manifest, **{graph: broken})
        assert f"{bundle.directory}: fp32/{graph}.onnx can't be loaded" in the_faults(bundle)


def test_the_other_graph_is_found_out(whole: Bundle, tmp_path: Path) -> None:
    step = (whole.directory / STEP).read_bytes()
    faults = the_faults(spoilt(whole, tmp_path / "bundle", whole.manifest, encoder=step))
    assert "model tiny-transformer: encoder.onnx has no input 'source_ids'" in faults


def other_axis(manifest: Manifest) -> Manifest:
    first, *others = manifest.memory
    axes = ("sentence", 10**15, *first.axes[2:])
    return replace(manifest, memory=(replace(first, axes=axes), *others))


def more_layers(manifest: Manifest) -> Manifest:
    return replace(manifest, attention=replace(manifest.attention, num_layers=6))


def more_pieces(manifest: Manifest) -> Manifest:
    return replace(manifest, vocabulary_size=manifest.vocabulary_size + 1)


def longer_sources(manifest: Manifest) -> Manifest:
    return replace(manifest, limits=Limits(5000, LIMITS.max_target_tokens))


def longer_targets(manifest: Manifest) -> Manifest:
    return replace(manifest, limits=Limits(LIMITS.max_source_tokens, 5000))


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (other_axis, "encoder.onnx has the output"),
        (more_layers, "step.onnx has the output 'attention'"),
        (more_pieces, "step.onnx has the output 'log_probs'"),
        (longer_sources, "encoder.onnx can't run at the limits"),
        (longer_targets, "step.onnx can't run at the limits"),
    ],
)
def test_a_manifest_of_another_network_is_found_out(
    change: Callable[[Manifest], Manifest], fault: str, whole: Bundle, tmp_path: Path
) -> None:
    faults = the_faults(spoilt(whole, tmp_path / "bundle", change(whole.manifest)))
    assert "model tiny-transformer: " in faults and fault in faults
