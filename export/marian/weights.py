"""The tensors of a checkpoint as the state of our Transformer.

Read from model.safetensors, which holds nothing but tensors, or from pytorch_model.bin, a pickle of
which torch runs nothing but what makes tensors. Every tensor must be used, or it means a network
that isn't this one.
"""

import pickle
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from export.marian.errors import MarianError
from export.marian.settings import MarianSettings
from export.marian.vocabulary import Vocabularies
from training.attention import sinusoidal_positions
from training.vocabulary import BOS_ID, PAD_ID

WEIGHT_FILES = ("model.safetensors", "pytorch_model.bin")

FORBIDDEN = -200.0
"""The bias on the logit of what is never said: no share of a softmax is left to it in float32, and
it is small enough to be exact to a thousandth beside other logits."""
# Half precision, in which old checkpoints keep them, rounds encodings by so much.
_POSITION_TOLERANCE = 1e-3

_SHARED, _HEAD = "model.shared.weight", "lm_head.weight"
_SOURCE, _TARGET = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"
_POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
_BIAS = "final_logits_bias"

# Ours, and what is put side by side for it.
_ENCODER_LAYER = {
    "self_attention.in_projection": ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
    "self_attention.output_projection": ("self_attn.out_proj",),
    "self_attention_norm": ("self_attn_layer_norm",),
    "feed_forward.inner_projection": ("fc1",),
    "feed_forward.output_projection": ("fc2",),
    "feed_forward_norm": ("final_layer_norm",),
}
_DECODER_LAYER = _ENCODER_LAYER | {
    "cross_attention.query_projection": ("encoder_attn.q_proj",),
    "cross_attention.key_value_projection": ("encoder_attn.k_proj", "encoder_attn.v_proj"),
    "cross_attention.output_projection": ("encoder_attn.out_proj",),
    "cross_attention_norm": ("encoder_attn_layer_norm",),
}


def read_weights(
    directory: Path, settings: MarianSettings, vocabularies: Vocabularies
) -> dict[str, Tensor]:
    """The state dict of the network, in float32.

    Raises MarianError for a file that is no checkpoint, and names every tensor that is missing, has
    another shape than the settings say, isn't finite or isn't known.
    """
    tensors = _Tensors(_read_tensors(directory))
    state = _embeddings(tensors, settings, vocabularies)
    for side, count, layer in (
        ("encoder", settings.encoder_layers, _ENCODER_LAYER),
        ("decoder", settings.decoder_layers, _DECODER_LAYER),
    ):
        for index in range(count):
            for ours, theirs in layer.items():
                path = f"model.{side}.layers.{index}"
                names = [f"{path}.{name}" for name in theirs]
                state |= tensors.module(f"{side}_layers.{index}.{ours}", names, settings)
    _check_positions(tensors, settings)
    if faults := [*tensors.faults, *tensors.unused()]:
        raise MarianError(directory, faults)
    return state


def _read_tensors(directory: Path) -> dict[str, Tensor]:
    name = next((name for name in WEIGHT_FILES if (directory / name).is_file()), None)
    if name is None:
        raise MarianError(directory, [f"there is no {' and no '.join(WEIGHT_FILES)}"])
    path = directory / name
    try:
        if name == WEIGHT_FILES[0]:
            tensors = load_file(path)
        else:
            with warnings.catch_warnings(action="ignore"):  # of what is refused with a reason
                tensors = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        fault = f"{name} has more than tensors, and running it isn't safe; save it as safetensors"
        raise MarianError(directory, [fault]) from error
    except (SafetensorError, RuntimeError, EOFError, OSError) as error:
        fault = f"{name} is damaged or no checkpoint; copy it again"
        raise MarianError(directory, [fault]) from error
    if not isinstance(tensors, dict) or not all(
        isinstance(key, str) and isinstance(value, Tensor) for key, value in tensors.items()
    ):
        raise MarianError(directory, [f"{name} has something else than tensors by name"])
    if odd := [key for key, value in tensors.items() if not _is_plain(value)]:
        raise MarianError(directory, [f"tensor {key} isn't made of plain floats" for key in odd])
    return tensors


def _is_plain(tensor: Tensor) -> bool:
    """Not integers, quantised, sparse, or without values."""
    is_here = tensor.device.type == "cpu" and tensor.layout == torch.strided
    return is_here and tensor.is_floating_point()


class _Tensors:
    """Hands tensors out by name, once each, and notes what is wrong."""

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        self.faults: list[str] = []
        self._tensors = dict(tensors)

    def take(self, name: str, *shape: int) -> Tensor:
        tensor = self.find([name], *shape)
        if tensor is None:
            self.faults.append(f"tensor {name} is missing")
            return torch.zeros(shape)
        return tensor

    def find(self, names: Sequence[str], *shape: int) -> Tensor | None:
        """One tensor under all those of the names that are there; None if none is."""
        found = [(name, self._tensors.pop(name)) for name in names if name in self._tensors]
        for name, tensor in found:
            if tuple(tensor.shape) != shape:
                self.faults.append(
                    f"tensor {name} is {list(tensor.shape)}, the settings say {list(shape)}"
                )
                return torch.zeros(shape)
            if not torch.equal(tensor, found[0][1]):
                self.faults.append(
                    f"tensor {name} differs from {found[0][0]}, which isn't supported"
                )
            if not torch.isfinite(tensor.float()).all():  # halves and doubles alike
                self.faults.append(f"tensor {name} has values that are not finite")
        return found[0][1].float() if found else None

    def module(
        self, ours: str, theirs: Sequence[str], settings: MarianSettings
    ) -> dict[str, Tensor]:
        """The weight and bias of layers side by side."""
        size, inner = settings.model_size, settings.feed_forward_size
        shape: tuple[int, ...] = (size, size)
        if theirs[0].endswith("norm"):
            shape = (size,)
        elif theirs[0].endswith("fc1"):
            shape = (inner, size)
        elif theirs[0].endswith("fc2"):
            shape = (size, inner)
        shapes = {"weight": shape, "bias": shape[:1]}
        return {
            f"{ours}.{kind}": torch.cat([self.take(f"{name}.{kind}", *shape) for name in theirs])
            for kind, shape in shapes.items()
        }

    def unused(self) -> Iterator[str]:
        if self._tensors:
            few = ", ".join(sorted(self._tensors)[:5])
            yield f"{len(self._tensors)} tensors are of no MarianMTModel with these settings: {few}"


def _embeddings(
    tensors: _Tensors, settings: MarianSettings, vocabularies: Vocabularies
) -> dict[str, Tensor]:
    """Tables and bias in the order of the layouts."""
    size, source, target = settings.model_size, vocabularies.source, vocabularies.target
    if settings.is_shared:
        names = [_SHARED, _SOURCE, _TARGET, _HEAD]
        tables = [tensors.find(names, settings.target_rows, size)] * 2
    else:
        # What is called shared then is the encoder's.
        tables = [
            tensors.find([_SOURCE, _SHARED], settings.source_rows, size),
            tensors.find([_TARGET, _HEAD], settings.target_rows, size),
        ]
    for name, table in zip((_SOURCE, _TARGET), tables, strict=True):
        if table is None:
            tensors.faults.append(f"tensor {name} is missing, under its other names too")
    source_table, target_table = tables
    if source_table is None or target_table is None:
        return {}
    state = {
        "embedding.weight": target_table[list(target.rows)],
        "embedding.bias": _bias(tensors, settings, vocabularies),
    }
    if source is not target:
        state["own_source_embedding.weight"] = source_table[list(source.rows)]
    return state


def _bias(tensors: _Tensors, settings: MarianSettings, vocabularies: Vocabularies) -> Tensor:
    """`final_logits_bias`, under which what is never said has no chance."""
    layout, rows = vocabularies.target, settings.target_rows
    given = tensors.find([_BIAS], 1, rows)
    bias = torch.zeros(rows) if given is None else given[0].clone()
    bias[[id for id in settings.forbidden if id < rows]] = FORBIDDEN
    ours = bias[list(layout.rows)]
    ours[[PAD_ID, BOS_ID]] = FORBIDDEN
    ours[layout.num_said :] = FORBIDDEN
    return ours


def _check_positions(tensors: _Tensors, settings: MarianSettings) -> None:
    """They are computed; a checkpoint that keeps them must keep the same."""
    rows, size = settings.max_positions, settings.model_size
    expected = sinusoidal_positions(rows, size, "halves")
    for name in _POSITIONS:
        table = tensors.find([name], rows, size)
        if table is not None and not torch.allclose(table, expected, 0, _POSITION_TOLERANCE):
            tensors.faults.append(
                f"tensor {name} has other positions than sines, then cosines; learned ones aren't "
                "supported"
            )
