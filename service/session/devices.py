"""Which device a graph runs on, and why it is not the one that was wanted.

onnxruntime falls back to the CPU by itself, and says so on stderr only. Here that is an error, with
a reason: another package, no driver, a library that is missing.
"""

import contextlib
import ctypes
import io
import logging
from collections.abc import Collection, Iterable
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import onnxruntime

from service.errors import ConfigError

PROVIDERS = {
    "cpu": ["CPUExecutionProvider"],
    "cuda": ["CUDAExecutionProvider", "CPUExecutionProvider"],
}
# Memory that was asked for once is never given back: no more than what was asked for.
_CUDA_OPTIONS = {"arena_extend_strategy": "kSameAsRequested"}
_CPU_PACKAGE, _GPU_PACKAGE = "onnxruntime", "onnxruntime-gpu"
_DRIVER = "libcuda.so.1"
_LOG = logging.getLogger(__name__)


def provider_options(device: str, max_bytes: int = 0) -> list[dict[str, str]]:
    """Those of each provider of a device; it takes at most `max_bytes` of its memory, 0 is all."""
    limit = {"gpu_mem_limit": str(max_bytes)} if max_bytes else {}
    of_provider = {"CUDAExecutionProvider": _CUDA_OPTIONS | limit}
    return [of_provider.get(provider, {}) for provider in PROVIDERS[device]]


def device_fault(device: str) -> str | None:
    """What is wrong with a device before anything is loaded; None if it may be there."""
    if device not in PROVIDERS:
        return f"device {device} is unknown; choose one of {', '.join(PROVIDERS)}"
    reason: str | None
    if PROVIDERS[device][0] not in onnxruntime.get_available_providers():
        reason = package_fault(_installed())
    else:
        reason = missing_library([_DRIVER] if device == "cuda" else [])
    return f"device {device} can't be had: {reason}" if reason else None


def package_fault(installed: Collection[str]) -> str:
    """Why a Python that has these packages of onnxruntime's has no CUDA provider."""
    if {_CPU_PACKAGE, _GPU_PACKAGE} <= set(installed):
        return (
            f"{_CPU_PACKAGE} and {_GPU_PACKAGE} are both installed and overwrite each other's"
            f" files; uninstall both, then install {_GPU_PACKAGE} alone"
        )
    if _GPU_PACKAGE in installed:
        return f"{_GPU_PACKAGE} is installed without its CUDA provider; install it again"
    return f"{_CPU_PACKAGE} has no CUDA; {_GPU_PACKAGE} in its place has"


def prepare(device: str) -> None:
    """Loads what a device needs from the wheels that bring it, where no loader would find it."""
    if device != "cuda":
        return
    # It prints what it doesn't find in a wheel, which may still be found elsewhere.
    with contextlib.redirect_stdout(io.StringIO()) as said:
        onnxruntime.preload_dlls(directory="")
    if lines := said.getvalue().splitlines():
        _LOG.debug("libraries of CUDA: %s", "; ".join(lines))


def check_device(session: onnxruntime.InferenceSession, device: str) -> None:
    """Raises ConfigError if a session runs on another device than it was to."""
    wanted = PROVIDERS[device][0]
    if session.get_providers()[0] == wanted:
        return
    folder = Path(onnxruntime.__file__).parent / "capi"
    provider = str(folder / "libonnxruntime_providers_cuda.so")
    needed = [_DRIVER, provider, "libcudnn.so.9"]
    reason = missing_library(needed) or "onnxruntime's own messages, on stderr, say why"
    raise ConfigError(f"device {device}", [f"onnxruntime fell back to the cpu: {reason}"])


def missing_library(names: Iterable[str]) -> str | None:
    """Why the first of these libraries that can't be loaded can't; None if all can."""
    for name in names:
        try:
            ctypes.CDLL(name)
        except OSError as error:
            hint = "; is there an NVIDIA driver?" if name.startswith("libcuda.") else ""
            return f"{error}{hint}"
    return None


def _installed() -> set[str]:
    return {name for name in (_CPU_PACKAGE, _GPU_PACKAGE) if _is_installed(name)}


def _is_installed(package: str) -> bool:
    try:
        distribution(package)
    except PackageNotFoundError:
        return False
    return True
