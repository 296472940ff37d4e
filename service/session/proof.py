"""What must hold of a bundle's graphs before they serve: they are what the manifest says, and run.

A signed file can still be no graph, the other graph, or one of another network. Then a server must
not start, and must say which file of which bundle it is.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import numpy as np

from service.bundle import Manifest, TensorSpec
from service.errors import BundleError
from service.session.graphs import Graphs
from service.session.model import OnnxModel

_TYPES = {
    "float32": "tensor(float)",
    "float16": "tensor(float16)",
    "int64": "tensor(int64)",
    "int32": "tensor(int32)",
    "int8": "tensor(int8)",
}


class Value(Protocol):
    """An input or output, as onnxruntime has it; an axis without a size is a name or None."""

    @property
    def name(self) -> str: ...

    @property
    def type(self) -> str: ...

    @property
    def shape(self) -> Sequence[int | str | None]: ...


def prove(graphs: Graphs) -> None:
    """Runs both graphs once, with all outputs, on the longest source and at the last position.

    Raises BundleError, naming the graph, if one isn't what the manifest says or can't run.
    """
    manifest = graphs.manifest
    if faults := [*_encoder_faults(graphs), *_step_faults(graphs)]:
        raise BundleError(f"model {manifest.name}", faults)
    limits = manifest.limits
    with _naming(manifest, "encoder"):
        model = OnnxModel(graphs, 1)
        model.append([[model.eos_id] * limits.max_source_tokens], 1)
    with _naming(manifest, "step"):
        last = np.array([limits.max_target_tokens - 1], np.int32)
        model.step(np.array([[model.start_id]]), last, 1, attention=True, full=True)


def _encoder_faults(graphs: Graphs) -> Iterator[str]:
    manifest = graphs.manifest
    sources = (
        TensorSpec("source_ids", ("sentence", "source"), "int64"),
        TensorSpec("source_lengths", ("sentence",), "int64"),
    )
    initial = [spec for spec in manifest.state if "target" not in spec.axes]
    outputs = (*manifest.memory, *initial)
    yield from _differences("encoder", "input", sources, graphs.encoder.get_inputs())
    yield from _differences("encoder", "output", outputs, graphs.encoder.get_outputs())


def _step_faults(graphs: Graphs) -> Iterator[str]:
    manifest = graphs.manifest
    attention, shortlist = manifest.attention, manifest.shortlist if graphs.shortlists else ()
    inputs = (
        TensorSpec("tokens", ("sentence", "beam"), "int64"),
        TensorSpec("positions", ("rows",), "int32"),
        TensorSpec("source_lengths", ("sentence",), "int64"),
        TensorSpec("num_candidates", (1,), "int64"),
        *(manifest.memory + shortlist + manifest.state),
    )
    num_weights = attention.num_layers * attention.num_heads
    outputs = (
        TensorSpec("candidate_log_probs", ("rows", "candidates")),
        TensorSpec("candidate_ids", ("rows", "candidates"), "int64"),
        TensorSpec("attention", ("rows", num_weights, "source")),
        TensorSpec("log_probs", ("rows", manifest.vocabulary_size)),
        *(TensorSpec(f"next_{spec.name}", spec.axes, spec.dtype) for spec in manifest.state),
    )
    yield from _differences("step", "input", inputs, graphs.step.get_inputs())
    yield from _differences("step", "output", outputs, graphs.step.get_outputs())


def _differences(
    graph: str, kind: str, expected: Iterable[TensorSpec], values: Iterable[Value]
) -> Iterator[str]:
    found = {value.name: value for value in values}
    for spec in expected:
        value = found.get(spec.name)
        if value is None:
            yield f"{graph}.onnx has no {kind} {spec.name!r}"
        elif value.type != _TYPES[spec.dtype] or not _agree(spec.axes, value.shape):
            shown = f"{value.type} {list(value.shape)}"
            wanted = f"{_TYPES[spec.dtype]} {list(spec.axes)}"
            yield f"{graph}.onnx has the {kind} {spec.name!r} as {shown}, expected {wanted}"


def _agree(axes: Sequence[int | str], shape: Sequence[int | str | None]) -> bool:
    """Whether no size contradicts another one."""
    return len(axes) == len(shape) and all(
        wanted == size
        for wanted, size in zip(axes, shape, strict=True)
        if isinstance(wanted, int) and isinstance(size, int)
    )


@contextmanager
def _naming(manifest: Manifest, graph: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        [reason, *_] = str(error).splitlines() or [type(error).__name__]
        fault = f"{graph}.onnx can't run at the limits of the manifest: {reason}"
        raise BundleError(f"model {manifest.name}", [fault]) from error
