"""Which bundles of a directory are served, and what keeps a server from starting."""

import shutil
from pathlib import Path

import pytest

from service.bundle import read_bundle, write_bundle
from service.config import ServerConfig
from service.errors import BundleError
from service.rpc import load_model, read_bundles
from tests.running_server import run_service


@pytest.fixture
def directory(models: Path, tmp_path: Path) -> Path:
    """A directory with one bundle, which may be spoilt."""
    shutil.copytree(models / "bahdanau", tmp_path / "models" / "bahdanau")
    return tmp_path / "models"


def test_a_folder_that_is_being_written_is_no_bundle(directory: Path) -> None:
    shutil.copytree(directory / "bahdanau", directory / ".bahdanau.0f3a")
    assert [bundle.directory.name for bundle in read_bundles(directory)] == ["bahdanau"]
    assert run_service("check", str(directory)).returncode == 0


def test_two_bundles_of_one_name_are_found_before_anything_is_loaded(directory: Path) -> None:
    shutil.copytree(directory / "bahdanau", directory / "copy")
    with pytest.raises(BundleError, match="the name tiny-bahdanau is that of bahdanau, copy"):
        read_bundles(directory)
    result = run_service("check", str(directory))
    assert result.returncode == 1
    assert "the name tiny-bahdanau is that of bahdanau, copy" in result.stderr


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
