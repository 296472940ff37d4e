"""Which bundles of a directory are served, and what keeps a server from starting."""

import shutil
from pathlib import Path

import pytest

from service.bundle import read_bundle, write_bundle
from service.catalog.folders import bundle_folders
from service.catalog.loading import load_model
from service.config import ServerConfig
from service.errors import BundleError
from tests.running_server import run_service
from tests.toy_bundle import edit, set_to


@pytest.fixture
def directory(models: Path, tmp_path: Path) -> Path:
    """A directory with one bundle, which may be spoilt."""
    shutil.copytree(models / "bahdanau", tmp_path / "models" / "bahdanau")
    return tmp_path / "models"


def test_a_folder_that_is_being_written_is_no_bundle(directory: Path) -> None:
    shutil.copytree(directory / "bahdanau", directory / ".bahdanau.0f3a")
    assert [folder.name for folder in bundle_folders(directory)] == ["bahdanau"]
    assert run_service("check", str(directory)).returncode == 0


def test_folders_are_in_natural_order(directory: Path) -> None:
    for name in ("x-10", "x-2", "x", "x-2a"):
        shutil.copytree(directory / "bahdanau", directory / name)
    names = [folder.name for folder in bundle_folders(directory)]
    assert names == ["bahdanau", "x", "x-2", "x-2a", "x-10"]


def test_check_finds_two_bundles_of_one_version(directory: Path) -> None:
    shutil.copytree(directory / "bahdanau", directory / "copy")
    result = run_service("check", str(directory))
    assert result.returncode == 1
    assert "version 1 of tiny-bahdanau is in bahdanau, copy; keep one" in result.stderr


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("fp32/step.onnx", "fp32/step.onnx can't be loaded"),
        ("source.model", "tokenizer: not a SentencePiece model"),
    ],
)
def test_a_signed_bundle_that_cannot_be_used_is_named(
    name: str, fault: str, directory: Path, tmp_path: Path
) -> None:
    whole = read_bundle(directory / "bahdanau")
    files = {each: (whole.directory / each).read_bytes() for each in whole.manifest.files}
    bundle = write_bundle(tmp_path / "spoilt" / "it", whole.manifest, files | {name: b"hello"})
    with pytest.raises(BundleError) as caught:
        load_model(bundle, ServerConfig(device="cpu", workers=1))
    assert str(caught.value).startswith(f"{bundle.directory}: {fault}")
    for command in (("check",), ("serve", "--port=0", "--metrics-port=0", "--models")):
        result = run_service(*command, str(tmp_path / "spoilt"))
        assert result.returncode == 1
        assert f"{bundle.directory}: {fault}" in result.stderr
        assert "Traceback" not in result.stderr


@pytest.mark.parametrize(("key", "of_tokenizer"), [("eos", 3), ("unk", 1)])
def test_special_ids_that_are_not_those_of_the_tokenizer_are_found(
    key: str, of_tokenizer: int, directory: Path
) -> None:
    edit(directory / "bahdanau", set_to("special_ids", key, value=7))
    result = run_service("check", str(directory))
    assert result.returncode == 1
    for side in ("source", "target"):
        fault = f"special_ids.{key} is 7, but the {side} tokenizer's is {of_tokenizer}"
        assert fault in result.stderr
