"""The network that a bundle's own weights are: for tests and comparisons without a checkpoint.

An int8 bundle gives back its dequantised weights; quantising those again gives the same integers,
so that float32 graphs made from them are the closest there are to what is served.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import torch
from torch import Tensor

from export.assemble import ATTENTION_LAYER, NETWORK, graph_files
from export.graphs import SCALE, GraphOptions, gru_parameters, weights_of
from export.graphs.builder import Array
from service.bundle import Bundle, write_bundle
from training.model import Translator, build_model


def network_of(bundle: Bundle) -> Translator:
    """The torch network in evaluation mode, from the most precise graphs that the bundle has."""
    model = build_model(bundle.manifest.provenance[NETWORK])
    model.load_state_dict(network_weights(bundle, model))
    return model.eval()


def attention_layer_of(bundle: Bundle) -> int:
    """The decoder layer of the network whose attention the bundle returns."""
    layer: int = bundle.manifest.provenance[ATTENTION_LAYER]
    return layer


def rebuild(bundle: Bundle, directory: Path) -> Bundle:
    """Write the float32 bundle of a bundle's weights.

    Raises:
        BundleError: if the directory exists.
    """
    manifest = bundle.manifest
    limits = manifest.limits
    options = GraphOptions(
        attention_layer_of(bundle), limits.max_source_tokens, limits.max_target_tokens
    )
    files = graph_files(network_of(bundle), ["fp32"], options, {})
    for side in ("source", "target"):
        if f"{side}.model" in manifest.files:
            files[f"{side}.model"] = bundle.tokenizer_bytes(side)
    rebuilt = replace(manifest, precisions=("fp32",), shortlist=())
    return write_bundle(directory, rebuilt, files)


def network_weights(bundle: Bundle, model: Translator) -> dict[str, Tensor]:
    """The state dict of `model` from the graphs of a bundle."""
    precision = "fp32" if "fp32" in bundle.manifest.precisions else "int8"
    kept: dict[str, Array] = {}
    for graph in ("encoder", "step"):
        kept |= weights_of(onnx.load(bundle.graph_path(precision, graph)))
    kept |= gru_parameters(kept)
    return {
        name: torch.tensor(_parameter(kept, name)).reshape(like.shape)
        for name, like in model.state_dict().items()
    }


def _parameter(kept: Mapping[str, Array], name: str) -> Array:
    """A parameter as torch has it: products are kept as (in, out), integers as value / scale."""
    value = kept[name]
    if value.dtype == np.int8:
        value = value.astype(np.float32) * kept[name + SCALE]
    return value.T
