"""A bundle whose graphs are any bytes, ways to spoil it, and what is then found wrong with it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from service.bundle import (
    Attention,
    Limits,
    Manifest,
    SearchDefaults,
    SpecialIds,
    TensorSpec,
    read_bundle,
)
from service.errors import BundleError

MANIFEST = Manifest(
    name="toy-en-fr",
    version="1.2.0",
    architecture="transformer",
    source_language="en",
    target_language="fr-CA",
    vocabulary_size=100,
    special_ids=SpecialIds(pad=0, eos=3, decoder_start=2, unk=1),
    limits=Limits(max_source_tokens=128, max_target_tokens=256),
    search=SearchDefaults(beam_size=4, length_penalty=0.6),
    memory=(TensorSpec("cross_key_0", ("sentence", 4, "source", 16)),),
    state=(
        TensorSpec("self_key_0", ("sentence * beam", 4, "target", 16)),
        TensorSpec("hidden", ("sentence * beam", 32), dtype="float16"),
    ),
    attention=Attention(layer=1, num_layers=2, num_heads=4),
    precisions=("fp32", "int8"),
    provenance={"data": "Tatoeba", "licence": "CC BY 2.0 FR", "scores": {"BLEU": 42.7}, "é": None},
)
FILES = {
    "source.model": b"tokens",
    "fp32/encoder.onnx": b"encoder",
    "fp32/step.onnx": b"step",
    "int8/encoder.onnx": b"small encoder",
    "int8/step.onnx": b"small step",
}
Change = Callable[[Any], None]


def edit(directory: Path, change: Change) -> None:
    """Change the JSON document of the manifest in place."""
    path = directory / "bundle.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")


def faults_of(directory: Path) -> tuple[str, ...]:
    with pytest.raises(BundleError) as caught:
        read_bundle(directory)
    assert str(caught.value).startswith(f"{directory}: ")
    return caught.value.faults


def the_fault_of(directory: Path) -> str:
    (fault,) = faults_of(directory)
    return fault


def set_to(*path: str | int, value: Any) -> Change:
    """A change that puts `value` at a path of keys and indices."""

    def change(document: Any) -> None:
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = value

    return change
