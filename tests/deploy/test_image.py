"""The image's recipe: hadolint finds nothing; what it installs is what was tested, by its hash."""

import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.deploy.recipe import read_recipe

ROOT = Path(__file__).parents[2]
LOCKS = ROOT / "deploy" / "locks"
HADOLINT = Path(sys.executable).with_name("hadolint")
SCRIPT = ROOT / "deploy" / "try-image.sh"
STAGES = read_recipe(ROOT / "Dockerfile")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
# An image has every extra of the server, and its own runtime.
ELSEWHERE, RUNTIMES = {"align", "dev", "plot", "ray", "train"}, {"cpu", "gpu"}
EXTRAS = {
    runtime: {*PROJECT["project"]["optional-dependencies"]} - ELSEWHERE - RUNTIMES | {runtime}
    for runtime in sorted(RUNTIMES)
}
_PIN = re.compile(r"^([a-z0-9-]+)==(\S+)((?: ;[^\\]*)?) \\$")
_HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}( \\)?$")


@dataclass
class Pin:
    """One library of a lock."""

    version: Version
    num_hashes: int = 0


def read_lock(name: str) -> dict[str, Pin]:
    """A lock's libraries by name. Fails on a line that is neither a pin nor a hash."""
    pins: dict[str, Pin] = {}
    for line in (LOCKS / f"{name}.txt").read_text("utf-8").splitlines():
        if pin := _PIN.match(line):
            last = pins[pin[1]] = Pin(Version(pin[2]))
        else:
            assert _HASH.match(line), line
            last.num_hashes += 1
    return pins


def requirements_of(lock: str) -> list[Requirement]:
    """What the project asks for in an image."""
    extras = PROJECT["project"]["optional-dependencies"]
    lines = [*PROJECT["project"]["dependencies"]]
    lines += [line for extra in EXTRAS[lock] for line in extras[extra]]
    return [Requirement(line) for line in lines]


def test_hadolint_finds_nothing() -> None:
    done = subprocess.run(
        [HADOLINT, "--failure-threshold", "style", ROOT / "Dockerfile"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_hadolint_would_find_a_fault(tmp_path: Path) -> None:
    recipe = tmp_path / "Dockerfile"
    recipe.write_text("FROM python\nRUN pip install numpy\n")
    done = subprocess.run([HADOLINT, recipe], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "DL3042" in done.stdout


@pytest.mark.parametrize("lock", EXTRAS)
def test_a_lock_has_what_the_project_asks_for(lock: str) -> None:
    pins = read_lock(lock)
    for requirement in requirements_of(lock):
        name = canonicalize_name(requirement.name)
        assert name in pins, f"{name} is missing: run `make lock`"
        assert pins[name].version in requirement.specifier, f"{requirement}: run `make lock`"


def test_the_lock_of_the_build_has_the_build_backend() -> None:
    [requirement] = map(Requirement, PROJECT["build-system"]["requires"])
    assert read_lock("build")[requirement.name].version in requirement.specifier


@pytest.mark.parametrize("lock", [*EXTRAS, "build"])
def test_every_library_has_hashes(lock: str) -> None:
    assert all(pin.num_hashes for pin in read_lock(lock).values())


@pytest.mark.parametrize("lock", EXTRAS)
def test_images_have_the_versions_that_are_tested(lock: str) -> None:
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    tested = {
        canonicalize_name(name): version for name, _, version in (x.partition("==") for x in lines)
    }
    pins = read_lock(lock)
    both = [name for name in map(canonicalize_name, pins) if name in tested]
    assert both and all(pins[name].version == Version(tested[name]) for name in both)


@pytest.mark.parametrize("lock", EXTRAS)
def test_no_image_has_what_trains(lock: str) -> None:
    assert not read_lock(lock).keys() & {"torch", "onnx", "onnxscript", "tensorboard", "sacrebleu"}


def test_the_cuda_image_has_the_libraries_of_its_runtime() -> None:
    pins = read_lock("gpu")
    cudnn = [name for name in pins if name.startswith("nvidia-cudnn-")]
    assert cudnn and "onnxruntime-gpu" in pins and "onnxruntime" not in pins


def test_every_stage_installs_by_hash_only() -> None:
    lines = [line for stage in STAGES.values() for line in stage.all_of("RUN")]
    installs = [line for line in lines if re.search(r"\bpip\b.* install ", line)]
    assert len(installs) == 4
    assert all("--require-hashes" in line or "--no-deps" in line for line in installs)


def test_no_image_comes_from_a_stage_with_a_compiler() -> None:
    with_packages = {
        name for name, stage in STAGES.items() if "apt-get" in " ".join(stage.all_of("RUN"))
    }
    assert with_packages == {"service"}
    assert not with_packages & {stage.base for stage in STAGES.values()}
    copies = [copy for stage in STAGES.values() for copy in stage.all_of("COPY")]
    taken = {copy.split()[1] for copy in copies if copy.startswith("--from=service ")}
    assert taken == {"/service"}


def test_what_a_stage_copies_is_there_and_not_ignored() -> None:
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    sent = [Path(line.removeprefix("!")) for line in lines if line.startswith("!")]
    for name in (Path(name) for stage in STAGES.values() for name in stage.copied):
        assert (ROOT / name).exists(), name
        assert any(name.is_relative_to(part) for part in sent), name


def test_the_default_image_is_that_of_the_cpu() -> None:
    assert [*STAGES][-1] == "cpu" and "cuda" in STAGES


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash isn't installed")
def test_the_script_that_tries_the_image_parses() -> None:
    subprocess.run(["bash", "-n", SCRIPT], check=True, timeout=60)


def test_the_script_makes_the_base_that_the_recipe_asks_for() -> None:
    bases = {stage.base for stage in STAGES.values()} - STAGES.keys()
    [made] = re.findall(r"^readonly BASE=docker.io/library/(\S+)$", SCRIPT.read_text(), re.M)
    assert bases == {made}
