"""From a checkpoint to a bundle: calibration, graphs, proof, scores, files, in that order.

Nothing appears at the destination unless every precision passed `verify`, float32 included,
whether it is shipped or not.
"""

import hashlib
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
from export.shortlist import build_lexicon
from export.verify import EvalSet, Tolerances, scores, verify
from service.bundle import SHORTLIST_NAME, Bundle, write_bundle
from training.checkpoint import TrainedTranslator
from training.data import Example


@dataclass(frozen=True, slots=True)
class Evidence:
    """The sentences that a bundle is calibrated on, verified on, and scored on.

    From `training`, if there are any, int8 graphs learn which words a sentence may become.
    """

    calibration: Sequence[Example]
    valid: EvalSet
    test: EvalSet
    training: Sequence[Example] = ()


def build_bundle(
    trained: TrainedTranslator,
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
    lexicon = None
    if evidence.training and "int8" in precisions:
        lexicon = build_lexicon(evidence.training, trained.vocabulary)
    files = graph_files(model, built, options, ranges, lexicon)
    files["source.model"] = trained.vocabulary
    if lexicon:
        files[SHORTLIST_NAME] = lexicon.to_bytes()
    if not description.version:
        description = replace(description, version=content_version(files, trained.step))
    provenance = _provenance(trained, len(pairs))
    manifest = manifest_for(model, description, built, provenance, shortlist=lexicon is not None)
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


def content_version(files: Mapping[str, bytes], step: int) -> str:
    """`5619-3fa9c01b`: the steps of the training, and a hash of all that decides a translation."""
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(name.encode() + hashlib.sha256(content).digest())
    return f"{step}-{digest.hexdigest()[:8]}"


def _provenance(trained: TrainedTranslator, num_calibration_pairs: int) -> dict[str, Any]:
    data = trained.config.data
    return {
        "licence": data.licence,
        "attribution": data.attribution,
        "training": trained.config.to_dict(),
        "steps": trained.step,
        "calibration_pairs": num_calibration_pairs,
        "made_with": {module.__name__: module.__version__ for module in (torch, onnx, onnxruntime)},
    }
