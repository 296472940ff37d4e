"""A device that can't be had stops the start, and says why; `auto` takes what there is."""

from dataclasses import replace
from pathlib import Path

import onnxruntime
import pytest

from service.bundle import read_bundle, write_bundle
from service.session.devices import PROVIDERS, device_fault, missing_library, package_fault
from tests.running_server import run_service, running_server


def pretend_installed(folder: Path, package: str) -> None:
    """What pip leaves of a package for those who ask for its version."""
    metadata = folder / f"{package.replace('-', '_')}-1.0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")


def test_each_way_to_have_no_cuda_provider_has_its_own_way_out() -> None:
    cpu = package_fault({"onnxruntime"})
    both = package_fault({"onnxruntime", "onnxruntime-gpu"})
    broken = package_fault({"onnxruntime-gpu"})
    assert "has no CUDA" in cpu
    assert "both installed" in both and "uninstall both" in both
    assert "install it again" in broken


def test_the_first_library_that_is_missing_is_named() -> None:
    reason = missing_library(["libc.so.6", "libnowhere.so.1", "libnothing.so.1"])
    assert reason and reason.startswith("libnowhere.so.1")
    assert missing_library(["libc.so.6"]) is None


def test_a_missing_driver_is_called_that() -> None:
    reason = missing_library(["libcuda.so.99"])
    assert reason and reason.endswith("is there an NVIDIA driver?")


def test_cuda_from_a_package_for_the_cpu_stops_the_start(models: Path) -> None:
    done = run_service("serve", "--models", str(models), "--device=cuda", "--port=0")
    assert done.returncode == 2
    assert "has no CUDA" in done.stderr


def test_cuda_from_two_packages_at_once_stops_the_start(models: Path, tmp_path: Path) -> None:
    pretend_installed(tmp_path, "onnxruntime-gpu")
    flags = ("--models", str(models), "--device=cuda", "--port=0", "--metrics-port=0")
    done = run_service("serve", *flags, PYTHONPATH=str(tmp_path))
    assert done.returncode == 2
    assert "onnxruntime and onnxruntime-gpu are both installed" in done.stderr


@pytest.fixture(scope="module")
def int8_only(models: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a bundle that has no graphs for a GPU."""
    directory, whole = tmp_path_factory.mktemp("int8"), read_bundle(models / "bahdanau")
    contents = {name: (whole.directory / name).read_bytes() for name in whole.manifest.files}
    files = {name.replace("fp32/", "int8/"): content for name, content in contents.items()}
    write_bundle(directory / "it", replace(whole.manifest, precisions=("int8",)), files)
    return directory


def test_the_machine_is_blamed_before_the_bundle(int8_only: Path, tmp_path: Path) -> None:
    done = run_service("serve", f"--models={int8_only}", "--device=cuda", "--port=0")
    assert done.returncode == 2
    [fault] = done.stderr.splitlines()
    assert fault.startswith("--device: device cuda can't be had: ")
    with running_server(int8_only, "--device=auto", log_file=tmp_path / "log") as server:
        [reason] = [line for line in server.log().splitlines() if "runs on the cpu: " in line]
    assert "device cuda can't be had" in reason


@pytest.mark.skipif(missing_library(["libcuda.so.1"]) is None, reason="there is a driver")
def test_a_package_for_the_gpu_without_a_driver_can_not_have_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: PROVIDERS["cuda"])
    fault = device_fault("cuda")
    assert fault and fault.startswith("device cuda can't be had: libcuda.so.1")
    assert device_fault("cpu") is None


def test_auto_logs_what_each_model_got_and_why(models: Path, tmp_path: Path) -> None:
    with running_server(models, "--device=auto", log_file=tmp_path / "log") as server:
        reasons = [line for line in server.log().splitlines() if "runs on the cpu: " in line]
    assert len(reasons) == len(list(models.iterdir()))
    assert all("device cuda can't be had" in line for line in reasons)
