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
from service.bundle import SHORTLIST_NAME, Bundle, Lexicon, write_bundle
from training.checkpoint import TrainedTranslator
from training.data import Example
from training.model import Translator

SOURCE_MODEL = "source.model"


@dataclass(frozen=True, slots=True)
class Evidence:
    """The sentences that a bundle is calibrated on, verified on, and scored on.

    From `training`, if there are any, int8 graphs learn which words a sentence may become. Without
    a `test` set there are no scores.
    """

    calibration: Sequence[Example]
    valid: EvalSet
    test: EvalSet | None
    training: Sequence[Example] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A network that is to be served.

    tokenizers: files of the bundle by their names. provenance: what is known of the network.
    steps: of its training, for the version; None if nobody knows.
    """

    model: Translator
    tokenizers: Mapping[str, bytes]
    provenance: Mapping[str, Any]
    steps: int | None = None


def build_bundle(
    trained: TrainedTranslator,
    directory: Path,
    description: Description,
    precisions: Sequence[str],
    evidence: Evidence,
    tolerances: Tolerances,
) -> Bundle:
    """Write a bundle of a checkpoint of ours in the given precisions.

    Raises what `build_candidate` raises.
    """
    candidate = Candidate(
        trained.model, {SOURCE_MODEL: trained.vocabulary}, _provenance(trained), trained.step
    )
    return build_candidate(candidate, directory, description, precisions, evidence, tolerances)


def build_candidate(
    candidate: Candidate,
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
    model, options = candidate.model, description.graph_options
    pairs = [(example.source_ids, example.target_ids) for example in evidence.calibration]
    ranges = calibrate(model, options, pairs) if "int8" in precisions else {}
    built = tuple(dict.fromkeys(("fp32", *precisions)))
    lexicon = _lexicon(candidate, evidence) if "int8" in precisions else None
    files = graph_files(model, built, options, ranges, lexicon)
    files |= candidate.tokenizers
    if lexicon:
        files[SHORTLIST_NAME] = lexicon.to_bytes()
    if not description.version:
        description = replace(description, version=content_version(files, candidate.steps))
    provenance = {**candidate.provenance, **_making(len(pairs))}
    manifest = manifest_for(model, description, built, provenance, shortlist=lexicon is not None)
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix=".export-") as scratch:
        draft = write_bundle(Path(scratch, "draft"), manifest, files)
        layer = description.attention_layer
        proven = {"verification": verify(draft, model, layer, evidence.valid, tolerances)}
        if test := evidence.test:
            proven["scores"] = {name: scores(draft, name, test) for name in precisions}
    provenance = {**manifest.provenance, **proven}
    shipped = replace(manifest, precisions=tuple(precisions), provenance=provenance)
    kept = {name: files[name] for name in files if name in shipped.file_names}
    return write_bundle(directory, shipped, kept)


def _lexicon(candidate: Candidate, evidence: Evidence) -> Lexicon | None:
    if not evidence.training:
        return None
    return build_lexicon(evidence.training, candidate.tokenizers[SOURCE_MODEL])


def content_version(files: Mapping[str, bytes], steps: int | None) -> str:
    """`5619-3fa9c01b`: the steps of the training, and a hash of all that decides a translation."""
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(name.encode() + hashlib.sha256(content).digest())
    digits = digest.hexdigest()[:8]
    return digits if steps is None else f"{steps}-{digits}"


def _provenance(trained: TrainedTranslator) -> dict[str, Any]:
    data = trained.config.data
    return {
        "licence": data.licence,
        "attribution": data.attribution,
        "training": trained.config.to_dict(),
        "steps": trained.step,
    }


def _making(num_calibration_pairs: int) -> dict[str, Any]:
    return {
        "calibration_pairs": num_calibration_pairs,
        "made_with": {module.__name__: module.__version__ for module in (torch, onnx, onnxruntime)},
    }
