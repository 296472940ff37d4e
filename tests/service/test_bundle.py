"""Bundles: what is written can be read back, and nothing else. Graphs are any bytes here."""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.bundle import (
    FORMAT_VERSION,
    Attention,
    Limits,
    Manifest,
    SearchDefaults,
    SpecialIds,
    TensorSpec,
    read_bundle,
    write_bundle,
)
from service.errors import BundleError

MANIFEST = Manifest(
    name="toy-en-fr",
    version="1.2.0",
    architecture="transformer",
    source_language="en",
    target_language="fr-CA",
    vocabulary_size=100,
    special_ids=SpecialIds(pad=0, eos=3, decoder_start=2, unk=1),
    limits=Limits(max_source_tokens=128, max_target_tokens=256),
    search=SearchDefaults(beam_size=4, length_penalty=0.6),
    memory=(TensorSpec("cross_key_0", ("sentence", 4, "source", 16)),),
    state=(
        TensorSpec("self_key_0", ("sentence * beam", 4, "target", 16)),
        TensorSpec("hidden", ("sentence * beam", 32), dtype="float16"),
    ),
    attention=Attention(layer=1, num_layers=2, num_heads=4),
    precisions=("fp32", "int8"),
    provenance={"data": "Tatoeba", "licence": "CC BY 2.0 FR", "scores": {"BLEU": 42.7}, "é": None},
)
FILES = {
    "source.model": b"tokens",
    "fp32/encoder.onnx": b"encoder",
    "fp32/step.onnx": b"step",
    "int8/encoder.onnx": b"small encoder",
    "int8/step.onnx": b"small step",
}
Change = Callable[[Any], None]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return write_bundle(tmp_path / "toy", MANIFEST, FILES).directory


def edit(directory: Path, change: Change) -> None:
    path = directory / "bundle.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")


def faults_of(directory: Path) -> tuple[str, ...]:
    with pytest.raises(BundleError) as caught:
        read_bundle(directory)
    assert str(caught.value).startswith(f"{directory}: ")
    return caught.value.faults


def the_fault_of(directory: Path) -> str:
    (fault,) = faults_of(directory)
    return fault


def set_to(*path: str | int, value: Any) -> Change:
    def change(document: Any) -> None:
        for key in path[:-1]:
            document = document[key]
        document[path[-1]] = value

    return change


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


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (set_to("colour", value=1), "colour is not a known key"),
        (set_to("limits", "max_tokens", value=1), "limits.max_tokens is not a known key"),
        (set_to("name", value=None), "name is null, must be a string"),
        (set_to("vocabulary_size", value=True), "vocabulary_size is true, must be an integer"),
        (set_to("vocabulary_size", value=100.0), "vocabulary_size is 100.0, must be an integer"),
        (set_to("search", "length_penalty", value="1"), 'search.length_penalty is "1", must be a'),
        (set_to("precisions", value="fp32"), 'precisions is "fp32", must be a list'),
        (set_to("precisions", 0, value=32), "precisions[0] is 32, must be a string"),
        (set_to("files", value=[]), "files is [], must be an object"),
        (set_to("files", value="all"), 'files is "all", must be an object'),
        (set_to("memory", 0, value=[]), "memory[0] is [], must be an object"),
        (set_to("memory", 0, "axes", 1, value=None), "memory[0].axes[1] is null, must be a string"),
        (set_to("files", "source.model", "size", value="6"), "files['source.model'].size is"),
    ],
)
def test_a_manifest_of_another_shape_is_refused(
    directory: Path, change: Change, fault: str
) -> None:
    edit(directory, change)
    assert the_fault_of(directory).startswith(fault)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (set_to("name", value="../toy"), "name is '../toy'"),
        (set_to("version", value=""), "version is ''"),
        (set_to("source_language", value="english text"), "source_language is 'english text'"),
        (set_to("limits", "max_source_tokens", value=0), "limits.max_source_tokens is 0, must"),
        (set_to("special_ids", "pad", value=-1), "special_ids.pad is -1, must be at least 0"),
        (set_to("special_ids", "eos", value=100), "special_ids.eos is 100, vocabulary_size is"),
        (set_to("search", "beam_size", value=0), "search.beam_size is 0, must be at least 1"),
        (set_to("search", "length_penalty", value=-1), "search.length_penalty is -1.0, must"),
        (set_to("search", "max_length", value=257), "search.max_length is 257, the model's limit"),
        (set_to("attention", "layer", value=2), "attention.layer is 2, must be from 0 to"),
        (set_to("attention", "num_heads", value=0), "attention.num_heads is 0, must be at least"),
        (set_to("memory", 0, "name", value="a b"), "memory[0].name is 'a b', must be letters"),
        (set_to("memory", 0, "name", value="tokens"), "memory[0].name is 'tokens', which the"),
        (set_to("memory", 0, "name", value="hidden"), "memory and state have 'hidden' more than"),
        (set_to("state", 1, "name", value="next_a"), "state[1].name is 'next_a', which the"),
        (set_to("state", 1, "dtype", value="float"), "state[1].dtype is 'float', must be one of"),
        (set_to("state", 1, "axes", value=[]), "axes of 'hidden' are [], the first must be"),
        (set_to("state", 1, "axes", 0, value="sentence"), "axes of 'hidden' are ['sentence', 32]"),
        (set_to("state", 1, "axes", 1, value=0), "axis 1 of 'hidden' is 0"),
        (set_to("state", 0, "axes", 1, value="target"), "axis 2 of 'self_key_0' is 'target'"),
        (set_to("memory", 0, "axes", 1, value="target"), "axis 1 of 'cross_key_0' is 'target'"),
        (set_to("files", "README.md", value={"sha256": "0" * 64, "size": 1}), "files has 'README"),
    ],
)
def test_a_manifest_with_a_value_out_of_range_is_refused(
    directory: Path, change: Change, fault: str
) -> None:
    edit(directory, change)
    assert the_fault_of(directory).startswith(fault)


def test_file_records_that_no_file_can_match_are_refused(directory: Path) -> None:
    edit(directory, set_to("files", "fp32/step.onnx", "sha256", value="A" * 64))
    edit(directory, set_to("files", "source.model", "size", value=0))
    edit(directory, set_to("files", "int8/step.onnx", "size", value=2**31 + 1))
    assert [f for f in faults_of(directory) if f.startswith("files[")] == [
        f"files['fp32/step.onnx'].sha256 is '{'A' * 64}', must be 64 lower-case hexadecimal digits",
        "files['int8/step.onnx'].size is 2147483649, must be from 1 to 2147483648",
        "files['source.model'].size is 0, must be from 1 to 2147483648",
    ]


def test_all_faults_are_told_at_once(directory: Path) -> None:
    edit(directory, set_to("name", value=" "))
    edit(directory, set_to("limits", "max_source_tokens", value=-5))
    edit(directory, set_to("colour", value="red"))
    (directory / "fp32/step.onnx").write_bytes(b"pets")
    (directory / "int8/step.onnx").unlink()
    starts = ("colour ", "name ", "limits.", "fp32/step.onnx has another", "int8/step.onnx is mis")
    faults = faults_of(directory)
    assert len(faults) == len(starts)
    assert all(any(fault.startswith(start) for fault in faults) for start in starts)


def test_a_part_that_cannot_be_built_hides_no_fault_of_another(directory: Path) -> None:
    edit(directory, set_to("special_ids", "eos", value="three"))
    edit(directory, set_to("limits", "max_source_tokens", value=0))
    edit(directory, lambda document: document.pop("attention"))
    assert sorted(fault.split()[0] for fault in faults_of(directory)) == [
        "attention", "limits.max_source_tokens", "special_ids.eos"
    ]  # fmt: skip


@pytest.mark.parametrize("version", [FORMAT_VERSION + 1, 0, "1", None])
def test_another_format_is_refused_before_its_keys_are_read(
    directory: Path, version: object
) -> None:
    edit(directory, lambda document: document.update(format_version=version, colour="red"))
    assert the_fault_of(directory).startswith(f"format_version is {version!r}, this release reads")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (b"", "Expecting value"),
        (b"\xff{}", "invalid start byte"),
        (b'{"a": 1, "a": 2}', "key 'a' is repeated"),
        (b'{"a": NaN}', "not JSON compliant"),
        (b'{"a": 1e999}', "not JSON compliant"),
        (b'{"a": "\\ud800"}', "surrogates not allowed"),
        (b'{"a": ' + b"9" * 19 + b"}", "integer of 19 digits"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_not_strict_json_is_refused(directory: Path, text: bytes, fault: str) -> None:
    (directory / "bundle.json").write_bytes(text)
    assert fault in the_fault_of(directory)


@pytest.mark.parametrize("text", [b"[]", b"1", b"null"])
def test_a_manifest_must_be_an_object(directory: Path, text: bytes) -> None:
    (directory / "bundle.json").write_bytes(text)
    assert the_fault_of(directory) == f"document is {text.decode()}, must be an object"


def test_a_manifest_may_not_be_huge(directory: Path) -> None:
    (directory / "bundle.json").write_bytes(b" " * (2**20 + 1))
    assert the_fault_of(directory) == "bundle.json has more than 1048576 bytes"


def test_a_directory_without_a_manifest_is_no_bundle(tmp_path: Path) -> None:
    assert the_fault_of(tmp_path) == "bundle.json is missing or no regular file"
    assert the_fault_of(tmp_path / "nowhere") == "bundle.json is missing or no regular file"


@pytest.mark.parametrize(
    "name",
    ["../secret", "/etc/passwd", "a/../../secret", "fp32\\step.onnx", "./source.model", "",
     "fp32//step.onnx", "source.model\x00", "bundle.json", "fp16/step.onnx"],
)  # fmt: skip
def test_no_name_leads_out_of_the_directory(directory: Path, name: str) -> None:
    record = read_bundle(directory).manifest.files["source.model"]
    edit(directory, set_to("files", name, value=vars(record)))
    assert the_fault_of(directory).startswith(f"files has {name!r}, which is no part")


@pytest.mark.parametrize("precisions", [[], ["fp32", "fp32", "int8"], ["fp32", "int8", ".."]])
def test_precisions_are_known_and_named_once(directory: Path, precisions: list[str]) -> None:
    edit(directory, set_to("precisions", value=precisions))
    assert faults_of(directory)[0].startswith("precisions ")


def test_graphs_that_are_missing_and_those_too_many_are_told_by_name(directory: Path) -> None:
    edit(directory, set_to("precisions", value=["fp16", "int8"]))
    assert [fault.split(",")[0] for fault in faults_of(directory)] == [
        "files has no 'fp16/encoder.onnx'",
        "files has no 'fp16/step.onnx'",
        "files has 'fp32/encoder.onnx'",
        "files has 'fp32/step.onnx'",
    ]


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


def paths_in(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The paths to everything in a JSON document but itself."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield (*path, key)
        if isinstance(item, dict | list):
            yield from paths_in(item, (*path, key))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_is_in_a_manifest_it_is_read_or_refused(
    directory: Path, data: st.DataObject
) -> None:
    path = directory / "bundle.json"
    original = path.read_text(encoding="utf-8")
    document = json.loads(original)
    place = data.draw(st.sampled_from(list(paths_in(document))))
    set_to(*place, value=data.draw(JSON))(document)
    path.write_text(json.dumps(document), encoding="utf-8")
    try:
        assert read_bundle(directory).directory == directory
    except BundleError as error:
        assert error.faults
    finally:
        path.write_text(original, encoding="utf-8")
