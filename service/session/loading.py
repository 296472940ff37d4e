"""Making a session of a graph: threads, provider, own kernels and the optimisations left out."""

import logging
import platform
from functools import cache
from pathlib import Path

import onnxruntime
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as UnknownProcessor

from service.errors import BundleError, ConfigError
from service.session.devices import PROVIDERS, check_device, provider_options
from service.session.fusion import fused

_LOG = logging.getLogger(__name__)

# The first is scalar code on CPU; the second hides the output product's bias from the int8 kernels,
# which then dequantise its whole weight on every step.
DISABLED_OPTIMIZERS = ["SkipLayerNormFusion", "MatMulAddFusion"]


def load_session(
    path: Path,
    device: str,
    *,
    threads: int = 1,
    max_device_bytes: int = 0,
    kernels: Path | None = None,
) -> onnxruntime.InferenceSession:
    """The graph in a file; `threads` are those of one call, `kernels` a library it is to use.

    Raises BundleError for a file that is no graph, and ConfigError if `device` can't have it.
    """
    if kernels:
        try:
            return _session_with_kernels(path, threads, kernels)
        except Exception as error:  # if it is the graph, the same fails below
            _LOG.warning("%s can't have own kernels: %s", path, " ".join(str(error).split()))
    try:
        session = _session(str(path), session_options(threads), device, max_device_bytes)
    except Exception as error:  # onnxruntime's have no base of their own
        fault = f"{path.parent.name}/{path.name} can't be loaded: {' '.join(str(error).split())}"
        # Another device may still take it.
        kind = BundleError if device == "cpu" else ConfigError
        raise kind(str(path.parent.parent), [fault]) from error
    check_device(session, device)
    return session


def with_kernels(path: Path, options: onnxruntime.SessionOptions, library: Path) -> bytes:
    """The graph in a file, to be run with these options, from which it has its kernels then."""
    options.register_custom_ops_library(str(library))
    return fused(path.read_bytes())


def _session_with_kernels(path: Path, threads: int, library: Path) -> onnxruntime.InferenceSession:
    options = session_options(threads)
    session = _session(with_kernels(path, options, library), options, "cpu")
    session._model_bytes = b""  # kept for another attempt, which there won't be
    return session


def _session(
    graph: str | bytes, options: onnxruntime.SessionOptions, device: str, max_device_bytes: int = 0
) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(
        graph,
        options,
        providers=PROVIDERS[device],
        provider_options=provider_options(device, max_device_bytes),
        disabled_optimizers=DISABLED_OPTIMIZERS,
        # Else it tries again on the cpu, and with the optimisations that were left out.
        enable_fallback=False,
    )


@cache
def accepted(kernels: Path | None) -> Path | None:
    """The library, if it is there and onnxruntime takes it."""
    if kernels is not None:
        try:
            onnxruntime.SessionOptions().register_custom_ops_library(str(kernels))
        except Exception as error:  # onnxruntime's have no base of their own
            # One that is for other processors says so itself, and is no fault.
            level = logging.INFO if isinstance(error, UnknownProcessor) else logging.WARNING
            _LOG.log(level, "going on without own kernels: %s", " ".join(str(error).split()))
            return None
    return kernels


def session_options(threads: int) -> onnxruntime.SessionOptions:
    """Those of every session here."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    # A pattern is kept for every shape ever seen, and in flight every step may have another one.
    options.enable_mem_pattern = False
    # Workers share a session, and its arena would hand one of them what is warm in another's cache.
    # On CUDA this is the arena of host memory alone.
    options.enable_cpu_mem_arena = False
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if _saturates():
        options.add_session_config_entry("session.x64quantprecision", "1")
    return options


def _saturates() -> bool:
    """Whether this processor's uint8 x int8 products overflow 16 bits: x86-64 without VNNI."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return False
    information = Path("/proc/cpuinfo")
    return not (information.exists() and "_vnni" in information.read_text())
