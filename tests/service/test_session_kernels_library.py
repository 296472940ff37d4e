"""The library of compiled kernels: built where there is a C compiler, and missed nowhere else."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from contextlib import suppress
from pathlib import Path

import onnxruntime
import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as UnknownProcessor

from service.session.kernels import library
from tests.deploy.recipe import read_recipe

ROOT = Path(__file__).parents[2]
KERNELS = Path("service", "session", "kernels")
[EXTENSION] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"][
    "ext-modules"
]
_COMPILER = os.environ.get("CC") or sysconfig.get_config_var("CC")
needs_compiler = pytest.mark.skipif(
    shutil.which(_COMPILER.split()[0]) is None, reason="no C compiler is installed"
)
needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="make isn't installed")


def installed(folder: Path, **environment: str) -> Path:
    """The service, installed as the image's recipe does from what it copies; where it lies."""
    context, target = folder / "context", folder / "target"
    ignored = shutil.ignore_patterns("__pycache__", "*.so")
    for name in read_recipe(ROOT / "Dockerfile")["service"].copied:
        (context / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, context / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, context / name)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--no-build-isolation", "--no-compile", "--target"]
    done = subprocess.run(
        [*command, target, context],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture(scope="module")
def without_compiler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("without")
    (nothing := folder / "nothing").mkdir()
    return installed(folder, PATH=str(nothing), CC="cc")


@pytest.fixture(scope="module")
def with_compiler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("with"))


def run_in(target: Path, *arguments: str | Path) -> str:
    """What Python says that imports the service which is installed in `target`."""
    environment = {"PYTHONPATH": str(target), "PYTHONSAFEPATH": "1"}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, text=True, check=True, stdout=subprocess.PIPE
    ).stdout


def library_in(target: Path) -> str:
    return run_in(
        target, "-c", "from service.session.kernels import library; print(library())"
    ).strip()


def found(pattern: str) -> set[str]:
    """The files of this repository in the kernels' folder."""
    return {path.relative_to(ROOT).as_posix() for path in (ROOT / KERNELS).rglob(pattern)}


def test_every_source_is_compiled_and_every_header_a_reason_to_compile_again() -> None:
    assert set(EXTENSION["sources"]) == found("*.c")
    assert set(EXTENSION["depends"]) == found("*.h")


@needs_compiler
def test_this_environment_has_the_library() -> None:
    assert library() is not None, "run: make"


def test_without_a_compiler_the_service_is_installed_without_the_library(
    without_compiler: Path,
) -> None:
    assert library_in(without_compiler) == "None"


def test_a_service_without_the_library_translates(without_compiler: Path) -> None:
    assert "transformer-en-fr" in run_in(
        without_compiler, "-m", "service", "check", ROOT / "models"
    )


@needs_compiler
def test_with_a_compiler_onnxruntime_can_load_what_is_installed(with_compiler: Path) -> None:
    file = Path(library_in(with_compiler))
    assert file.parent == with_compiler / KERNELS
    with suppress(UnknownProcessor):  # the library's own refusal: it was loaded
        onnxruntime.SessionOptions().register_custom_ops_library(str(file))


@needs_compiler
def test_the_sources_are_not_installed(with_compiler: Path) -> None:
    assert not [*with_compiler.rglob("*.[ch]")]


@needs_make
@pytest.mark.parametrize("environment", ["serve", "full"])
def test_make_installs_anew_what_a_changed_source_changes(environment: str, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").touch()
    (stamp := tmp_path / f".{environment}").touch()

    def installs(*options: str) -> bool:
        # Without the flags of the make that may run the tests.
        done = subprocess.run(
            ["make", "--dry-run", f"VENV={tmp_path}", *options, stamp],
            cwd=ROOT,
            env={"PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return "pip install" in done.stdout

    assert not installs()
    changes = EXTENSION["sources"] + EXTENSION["depends"]
    assert all(installs("--what-if", file) for file in changes)
