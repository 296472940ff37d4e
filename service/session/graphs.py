"""Loading a bundle's two graphs: threads, providers and the optimisations left out."""

import platform
from dataclasses import dataclass
from pathlib import Path

import onnxruntime

from service.bundle import Bundle, Manifest
from service.errors import BundleError, ConfigError
from service.session.devices import (
    PROVIDERS,
    check_device,
    device_fault,
    prepare,
    provider_options,
)
from service.session.shortlist import Shortlists

# The first is scalar code on CPU; the second hides the output product's bias from the int8 kernels,
# which then dequantise its whole weight on every step.
_DISABLED_OPTIMIZERS = ["SkipLayerNormFusion", "MatMulAddFusion"]


@dataclass(frozen=True)
class Graphs:
    """The encoder and step sessions of a bundle in one precision; safe to share between threads.

    `manifest` has its tensors as this precision's graphs do; `shortlists` are there if the graphs
    can choose from a sentence's own words.
    """

    manifest: Manifest
    encoder: onnxruntime.InferenceSession
    step: onnxruntime.InferenceSession
    shortlists: Shortlists | None = None

    @classmethod
    def load(
        cls,
        bundle: Bundle,
        precision: str,
        *,
        device: str = "cpu",
        threads: int = 1,
        max_device_bytes: int = 0,
    ) -> "Graphs":
        """Loads both graphs; `threads` are those of one call, and each graph takes at most
        `max_device_bytes` of a GPU's memory, 0 for as much as it needs.

        Raises ConfigError for a precision the bundle lacks or a device onnxruntime can't give, and
        BundleError for a file that is no graph.
        """
        _check_available(bundle.manifest, precision, device)
        prepare(device)
        options = _session_options(threads)
        encoder, step = (
            _load_session(bundle.graph_path(precision, graph), options, device, max_device_bytes)
            for graph in ("encoder", "step")
        )
        can_choose = any(each.name == "whole_vocabulary" for each in step.get_inputs())
        lexicon = bundle.lexicon() if can_choose else None
        manifest = bundle.manifest.in_precision(precision)
        return cls(manifest, encoder, step, Shortlists(lexicon) if lexicon else None)


def _check_available(manifest: Manifest, precision: str, device: str) -> None:
    faults = []
    if precision not in manifest.precisions:
        known = ", ".join(manifest.precisions)
        faults.append(f"precision {precision} is not in bundle {manifest.name}, which has {known}")
    if fault := device_fault(device):
        faults.append(fault)
    if faults:
        raise ConfigError(f"model {manifest.name}", faults)


def _session_options(threads: int) -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
    # A pattern is kept for every shape ever seen, and in flight every step may have another one.
    options.enable_mem_pattern = False
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


def _load_session(
    path: Path, options: onnxruntime.SessionOptions, device: str, max_device_bytes: int
) -> onnxruntime.InferenceSession:
    try:
        session = onnxruntime.InferenceSession(
            str(path),
            options,
            providers=PROVIDERS[device],
            provider_options=provider_options(device, max_device_bytes),
            disabled_optimizers=_DISABLED_OPTIMIZERS,
            # Else it tries again on the cpu, and with the optimisations that were left out.
            enable_fallback=False,
        )
    except Exception as error:  # onnxruntime's have no base of their own
        fault = f"{path.parent.name}/{path.name} can't be loaded: {' '.join(str(error).split())}"
        # Another device may still take it.
        kind = BundleError if device == "cpu" else ConfigError
        raise kind(str(path.parent.parent), [fault]) from error
    check_device(session, device)
    return session
