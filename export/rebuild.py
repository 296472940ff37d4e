"""The network that a bundle's own weights are: for tests and comparisons without a checkpoint.

An int8 bundle gives back its dequantised weights; quantising those again gives the same integers,
so that float32 graphs made from them are the closest there are to what is served.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import onnx
import torch
from google.protobuf.message import DecodeError
from torch import Tensor

from export.assemble import ATTENTION_LAYER, NETWORK, graph_files
from export.graphs import SCALE, GraphOptions, gru_parameters, weights_of
from export.graphs.builder import Array
from export.graphs.parts import SOURCE_TABLE
from export.graphs.products import LOOKUP
from service.bundle import Bundle, write_bundle
from service.errors import BundleError
from training.model import Translator, build_model

GRAPHS: Final[tuple[Literal["encoder", "step"], ...]] = ("encoder", "step")


def network_of(bundle: Bundle) -> Translator:
    """The torch network in evaluation mode, from the most precise graphs that the bundle has."""
    model = build_model(_provenance(bundle, NETWORK))
    model.load_state_dict(network_weights(bundle, model))
    return model.eval()


def attention_layer_of(bundle: Bundle) -> int:
    """The decoder layer of the network whose attention the bundle returns."""
    layer: int = _provenance(bundle, ATTENTION_LAYER)
    return layer


def load_graph(
    bundle: Bundle, precision: str, graph: Literal["encoder", "step"]
) -> onnx.ModelProto:
    """The graph as onnx reads it. Raises BundleError if it is none."""
    try:
        return onnx.load(bundle.graph_path(precision, graph), load_external_data=False)
    except DecodeError as error:
        fault = f"{precision}/{graph}.onnx is no ONNX graph; export the model again"
        raise BundleError(str(bundle.directory), [fault]) from error


def rebuild(bundle: Bundle, directory: Path, precisions: Sequence[str] = ("fp32",)) -> Bundle:
    """Write a bundle's weights as a bundle of float precisions.

    Raises:
        BundleError: if the directory exists.
    """
    manifest = bundle.manifest
    limits = manifest.limits
    options = GraphOptions(
        attention_layer_of(bundle), limits.max_source_tokens, limits.max_target_tokens
    )
    files = graph_files(network_of(bundle), precisions, options, {})
    for side in ("source", "target"):
        if f"{side}.model" in manifest.files:
            files[f"{side}.model"] = bundle.tokenizer_bytes(side)
    rebuilt = replace(manifest, precisions=tuple(precisions), shortlist=())
    return write_bundle(directory, rebuilt, files)


def network_weights(bundle: Bundle, model: Translator) -> dict[str, Tensor]:
    """The state dict of `model` from the graphs of a bundle."""
    precision = min(bundle.manifest.precisions, key=("fp32", "fp16", "int8").index)
    kept: dict[str, Array] = {}
    for graph in GRAPHS:
        kept |= weights_of(load_graph(bundle, precision, graph))
    kept |= gru_parameters(kept)
    if SOURCE_TABLE + LOOKUP in kept:
        kept[f"{SOURCE_TABLE}.weight"] = _table(kept, model.source_embedding.scale)
    return {
        name: torch.tensor(_parameter(kept, name)).reshape(like.shape)
        for name, like in model.state_dict().items()
    }


def _provenance(bundle: Bundle, key: str) -> Any:
    try:
        return bundle.manifest.provenance[key]
    except KeyError:
        fault = f"its provenance has no {key!r}; export the model again"
        raise BundleError(str(bundle.directory), [fault]) from None


def _table(kept: Mapping[str, Array], factor: float) -> Array:
    """The table of the source alone (size, rows), which graphs have only to look rows up in."""
    table = kept[SOURCE_TABLE + LOOKUP]
    if table.dtype == np.uint8:
        table = (table.astype(np.float32) - 128) * kept[SOURCE_TABLE + LOOKUP + SCALE]
    return (table / np.float32(factor)).T


def _parameter(kept: Mapping[str, Array], name: str) -> Array:
    """A parameter as torch has it: products are kept as (in, out), integers as value / scale."""
    value = kept[name]
    if value.dtype == np.int8:
        value = value.astype(np.float32) * kept[name + SCALE]
    return value.astype(np.float32).T
