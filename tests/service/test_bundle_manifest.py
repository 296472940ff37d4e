"""The manifest: whatever is wrong with it is found, named and told at once."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.bundle import FORMAT_VERSION, read_bundle, write_bundle
from service.errors import BundleError
from tests.toy_bundle import FILES, MANIFEST, Change, edit, faults_of, set_to, the_fault_of

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return write_bundle(tmp_path / "toy", MANIFEST, FILES).directory


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
        (set_to("search", "beam_size", value=0), "search.beam_size is 0; it must be from 1 to"),
        (set_to("search", "beam_size", value=65), "search.beam_size is 65; it must be from 1 to"),
        (set_to("search", "max_length_ratio", value=1e308), "search.max_length_ratio is 1e+308;"),
        (set_to("search", "length_penalty", value=-1), "search.length_penalty is -1.0; it must"),
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
