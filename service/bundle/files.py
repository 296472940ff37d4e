"""Bundles on disk: read and verified as a whole, written as a whole or not at all."""

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from service.bundle.lexicon import SHORTLIST_NAME, Lexicon
from service.bundle.manifest import (
    FORMAT_VERSION,
    OLDEST_FORMAT_VERSION,
    FileRecord,
    Manifest,
)
from service.bundle.records import parse_json, read_record, to_json
from service.errors import BundleError
from service.reading import read_regular

MANIFEST_NAME = "bundle.json"
MAX_MANIFEST_BYTES = 2**20


@dataclass(frozen=True)
class Bundle:
    """A directory that is what its manifest says, as far as it was when it was read."""

    directory: Path
    manifest: Manifest

    def tokenizer_bytes(self, side: Literal["source", "target"]) -> bytes:
        """Return the SentencePiece model of a side; one file may serve both."""
        name = f"{side}.model"
        return (
            self.directory / (name if name in self.manifest.files else "source.model")
        ).read_bytes()

    def lexicon(self) -> Lexicon | None:
        """Return what shortlists are drawn up from, None if the bundle has none.

        Raises:
            BundleError: if the file holds something else.
        """
        if SHORTLIST_NAME not in self.manifest.files:
            return None
        data = (self.directory / SHORTLIST_NAME).read_bytes()
        return Lexicon.from_bytes(data, self.manifest.vocabulary_size)

    def graph_path(self, precision: str, graph: Literal["encoder", "step"]) -> Path:
        """Return the path of an ONNX file.

        Raises:
            BundleError: if the bundle doesn't have that precision.
        """
        if precision not in self.manifest.precisions:
            offered = ", ".join(self.manifest.precisions)
            raise BundleError(
                str(self.directory), [f"has no precision {precision!r}, only {offered}"]
            )
        return self.directory / precision / f"{graph}.onnx"


def read_bundle(directory: Path, *, verify: bool = True) -> Bundle:
    """Read a bundle and check it; without `verify`, the files' sizes but not their SHA-256.

    Raises:
        BundleError: with every fault of the manifest and of the files.
    """
    manifest, faults = _read_manifest(directory)
    if manifest:
        faults += _file_faults(directory, manifest, verify)
    if faults or manifest is None:
        raise BundleError(str(directory), faults)
    return Bundle(directory, manifest)


def write_bundle(directory: Path, manifest: Manifest, files: Mapping[str, bytes]) -> Bundle:
    """Write a new bundle; `manifest.files` is computed. A crash leaves nothing under this name.

    A manifest of an older format becomes one of the newest.

    Raises:
        BundleError: if what would be written can't be read back, or the directory exists.
    """
    manifest = replace(
        manifest,
        files={name: _record(data) for name, data in files.items()},
        format_version=max(FORMAT_VERSION, manifest.format_version),
    )
    text = to_json(manifest).encode()
    faults = _parse_manifest(text)[1]
    if directory.exists():
        faults.append("the directory exists; remove it or choose another name")
    if faults:
        raise BundleError(str(directory), faults)
    unfinished = directory.with_name(f".{directory.name}.{secrets.token_hex(8)}")
    try:
        for name, data in {**files, MANIFEST_NAME: text}.items():
            _write(unfinished / name, data)
        for folder in {(unfinished / name).parent for name in files} | {unfinished}:
            _sync(folder)
        unfinished.rename(directory)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    _sync(directory.parent)
    return read_bundle(directory)


def _read_manifest(directory: Path) -> tuple[Manifest | None, list[str]]:
    try:
        if fault := _place_fault(directory, MANIFEST_NAME):
            return None, [f"{MANIFEST_NAME} {fault}"]
        data = read_regular(directory / MANIFEST_NAME, MAX_MANIFEST_BYTES + 1)
    except OSError as exc:
        return None, [f"{MANIFEST_NAME} can't be read: {exc.strerror}"]
    if len(data) > MAX_MANIFEST_BYTES:
        return None, [f"{MANIFEST_NAME} has more than {MAX_MANIFEST_BYTES} bytes"]
    return _parse_manifest(data)


def _parse_manifest(data: bytes) -> tuple[Manifest | None, list[str]]:
    try:
        document = parse_json(data)
    except ValueError as exc:
        return None, [f"{MANIFEST_NAME} is no strict JSON: {exc}"]
    # Before all else: what is right in another version would only look like faults.
    if isinstance(document, dict) and (fault := _version_fault(document.get("format_version"))):
        return None, [fault]
    return read_record(Manifest, document)


def _version_fault(version: object) -> str | None:
    if type(version) is int and OLDEST_FORMAT_VERSION <= version <= FORMAT_VERSION:
        return None
    read = f"this release reads {OLDEST_FORMAT_VERSION} to {FORMAT_VERSION}"
    way_out = "export the model again, or serve it with the release that wrote it"
    return f"format_version is {version!r}, {read}; {way_out}"


def _file_faults(directory: Path, manifest: Manifest, verify: bool) -> Iterator[str]:
    # Other names are faults of the manifest, and may lead anywhere: they are not even looked at.
    for name in sorted(manifest.file_names & manifest.files.keys()):
        try:
            fault = _file_fault(directory, name, manifest.files[name], verify)
        except OSError as exc:
            fault = f"can't be read: {exc.strerror}"
        if fault:
            yield f"{name} {fault}"


def _file_fault(directory: Path, name: str, record: FileRecord, verify: bool) -> str | None:
    if fault := _place_fault(directory, name):
        return fault
    path = directory / name
    size = path.stat().st_size
    if size != record.size:
        return f"has {size} bytes, the manifest says {record.size}; copy it again"
    if verify and _sha256(path) != record.sha256:
        return "has another SHA-256 than the manifest says; copy it again"
    return None


def _place_fault(directory: Path, name: str) -> str | None:
    """Why a name is no file of the directory itself, which may be reached through links."""
    folder = os.path.dirname(name)
    if (directory / name).is_symlink() or (folder and (directory / folder).is_symlink()):
        return "is behind a symbolic link; put the file itself there"
    return None if (directory / name).is_file() else "is missing or no regular file"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _record(data: bytes) -> FileRecord:
    return FileRecord(sha256=hashlib.sha256(data).hexdigest(), size=len(data))


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Make a folder's names durable: fsync of a file says nothing about its name."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
