"""Bundles: what is written can be read back, and nothing else. Graphs are any bytes here."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from service.bundle import FORMAT_VERSION, Manifest, read_bundle, write_bundle
from service.errors import BundleError
from tests.toy_bundle import FILES, MANIFEST, faults_of, the_fault_of


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return write_bundle(tmp_path / "toy", MANIFEST, FILES).directory


def test_a_manifest_is_read_back_as_it_was_written(directory: Path) -> None:
    bundle = read_bundle(directory)
    assert replace(bundle.manifest, files={}) == MANIFEST
    assert bundle.manifest.languages == ("en", "fr-CA")
    assert bundle.manifest.files.keys() == FILES.keys()


def test_writing_returns_what_reading_returns_and_is_reproducible(tmp_path: Path) -> None:
    first = write_bundle(tmp_path / "first", MANIFEST, FILES)
    second = write_bundle(tmp_path / "second", first.manifest, dict(reversed(FILES.items())))
    assert first == read_bundle(tmp_path / "first")
    assert first.manifest == second.manifest
    text = (tmp_path / "first/bundle.json").read_bytes()
    assert text == (tmp_path / "second/bundle.json").read_bytes()
    assert text.endswith(b"}\n") and "é".encode() in text


def test_files_are_found_by_what_they_are_for(directory: Path) -> None:
    bundle = read_bundle(directory)
    assert bundle.graph_path("int8", "step").read_bytes() == b"small step"
    assert bundle.tokenizer_bytes("source") == bundle.tokenizer_bytes("target") == b"tokens"
    with pytest.raises(BundleError, match="no precision 'fp16', only fp32, int8"):
        bundle.graph_path("fp16", "step")


def test_each_language_may_have_its_own_tokenizer(tmp_path: Path) -> None:
    bundle = write_bundle(tmp_path / "toy", MANIFEST, {**FILES, "target.model": b"jetons"})
    assert bundle.tokenizer_bytes("source") == b"tokens"
    assert bundle.tokenizer_bytes("target") == b"jetons"


def test_other_files_in_the_folder_are_ignored(directory: Path) -> None:
    (directory / "README.md").write_text("for people")
    (directory / "fp16").symlink_to("/")
    assert read_bundle(directory).manifest.name == "toy-en-fr"


def test_the_directory_itself_may_be_a_link(directory: Path) -> None:
    link = directory.with_name("current")
    link.symlink_to(directory)
    assert read_bundle(link).manifest == read_bundle(directory).manifest


def test_a_directory_without_a_manifest_is_no_bundle(tmp_path: Path) -> None:
    assert the_fault_of(tmp_path) == "bundle.json is missing or no regular file"
    assert the_fault_of(tmp_path / "nowhere") == "bundle.json is missing or no regular file"


@pytest.mark.parametrize("name", ["bundle.json", "source.model", "int8/step.onnx", "fp32"])
def test_nothing_inside_may_be_a_link(directory: Path, name: str) -> None:
    path = directory / name
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))
    assert all("is behind a symbolic link" in fault for fault in faults_of(directory))


def test_a_pipe_in_place_of_a_file_is_not_opened(directory: Path) -> None:
    for name in ("source.model", "bundle.json"):
        (directory / name).unlink()
        os.mkfifo(directory / name)
        assert the_fault_of(directory) == f"{name} is missing or no regular file"


@pytest.mark.parametrize("name", FILES)
def test_a_changed_file_is_refused(directory: Path, name: str) -> None:
    data = bytearray(FILES[name])
    data[0] ^= 1
    (directory / name).write_bytes(data)
    assert the_fault_of(directory).startswith(f"{name} has another SHA-256")
    (directory / name).write_bytes(data[1:])
    assert the_fault_of(directory).startswith(f"{name} has {len(data) - 1} bytes")


def test_without_verification_only_the_contents_are_trusted(directory: Path) -> None:
    (directory / "source.model").write_bytes(b"nekots")
    assert read_bundle(directory, verify=False).manifest.name == "toy-en-fr"
    (directory / "source.model").write_bytes(b"n")
    with pytest.raises(BundleError, match="source.model has 1 bytes"):
        read_bundle(directory, verify=False)


@pytest.mark.parametrize(
    ("manifest", "files"),
    [
        (replace(MANIFEST, name="no name"), FILES),
        (replace(MANIFEST, provenance={"steps": 10**20}), FILES),
        (replace(MANIFEST, format_version=FORMAT_VERSION + 1), FILES),
        (MANIFEST, {**FILES, "../escape": b"data"}),
        (MANIFEST, {**FILES, "source.model": b""}),
        (MANIFEST, {"source.model": b"tokens"}),
    ],
)
def test_what_could_not_be_read_back_is_not_written(
    tmp_path: Path, manifest: Manifest, files: dict[str, bytes]
) -> None:
    with pytest.raises(BundleError):
        write_bundle(tmp_path / "bundles" / "toy", manifest, files)
    assert list(tmp_path.iterdir()) == []


def test_a_bundle_is_never_overwritten(directory: Path) -> None:
    with pytest.raises(BundleError, match="the directory exists"):
        write_bundle(directory, replace(MANIFEST, version="2"), FILES)
    assert read_bundle(directory).manifest.version == "1.2.0"


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "toy").symlink_to(tmp_path / "dangling")
    with pytest.raises(OSError):
        write_bundle(tmp_path / "toy", MANIFEST, FILES)
    assert [path.name for path in tmp_path.iterdir()] == ["toy"]
