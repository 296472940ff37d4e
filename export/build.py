"""From a checkpoint to a bundle: calibration, graphs, proof, scores, files, in that order.

Nothing appears at the destination unless every precision passed `verify`, float32 included,
whether it is shipped or not.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import torch

from export.assemble import Description, graph_files, manifest_for
from export.quantize import calibrate
from export.verify import EvalSet, Tolerances, scores, verify
from service.bundle import Bundle, write_bundle
from training.checkpoint import load_checkpoint, tensor_to_bytes
from training.data import Example
from training.model import Translator, build_model


@dataclass(frozen=True, slots=True)
class Trained:
    """A trained network, and where it came from."""

    model: Translator
    vocabulary: bytes
    config: Mapping[str, Any]
    """Of the training, as plain values."""
    step: int

    @classmethod
    def load(cls, path: Path) -> "Trained":
        """The averaged weights of a checkpoint of `training.train`."""
        checkpoint = load_checkpoint(path)
        model = build_model(checkpoint["model_config"])
        model.load_state_dict(checkpoint["average"])
        vocabulary = tensor_to_bytes(checkpoint["vocabulary"])
        return cls(model.eval(), vocabulary, checkpoint["config"], checkpoint["step"])


@dataclass(frozen=True, slots=True)
class Evidence:
    """The sentences that a bundle is calibrated on, verified on, and scored on."""

    calibration: Sequence[Example]
    valid: EvalSet
    test: EvalSet


def build_bundle(
    trained: Trained,
    directory: Path,
    description: Description,
    precisions: Sequence[str],
    evidence: Evidence,
    tolerances: Tolerances,
) -> Bundle:
    """Write a bundle in the given precisions.

    Raises:
        ParityError: if a graph is not its network.
        BundleError: if the directory exists.
    """
    model, options = trained.model, description.graph_options
    pairs = [(example.source_ids, example.target_ids) for example in evidence.calibration]
    ranges = calibrate(model, options, pairs) if "int8" in precisions else {}
    built = tuple(dict.fromkeys(("fp32", *precisions)))
    files = graph_files(model, built, options, ranges) | {"source.model": trained.vocabulary}
    manifest = manifest_for(model, description, built, _provenance(trained, len(pairs)))
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=".export-") as scratch:
        draft = write_bundle(Path(scratch, "draft"), manifest, files)
        proven = {
            "verification": verify(
                draft, model, description.attention_layer, evidence.valid, tolerances
            ),
            "scores": {name: scores(draft, name, evidence.test) for name in precisions},
        }
    provenance = {**manifest.provenance, **proven}
    shipped = replace(manifest, precisions=tuple(precisions), provenance=provenance)
    kept = {name: files[name] for name in files if name in shipped.file_names}
    return write_bundle(directory, shipped, kept)


def _provenance(trained: Trained, num_calibration_pairs: int) -> dict[str, Any]:
    data = trained.config["data"]
    return {
        "licence": data["licence"],
        "attribution": data["attribution"],
        "training": trained.config,
        "steps": trained.step,
        "calibration_pairs": num_calibration_pairs,
        "made_with": {module.__name__: module.__version__ for module in (torch, onnx, onnxruntime)},
    }
