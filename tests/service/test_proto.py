"""The contract: the committed code is generated from it, and it says what the domain says."""

import subprocess
import sys
from dataclasses import fields
from enum import Enum
from pathlib import Path

import pytest

from service.catalog import Outcome, State
from service.decoding import DecodingOptions, FinishReason, LengthForm, Stopping
from service.pb import admin_pb2
from service.pb import translation_pb2 as pb

ROOT = Path(__file__).parents[2]
CONTRACTS = ("translation", "admin")
GENERATED = [f"{name}_pb2{end}" for name in CONTRACTS for end in (".py", ".pyi", "_grpc.py")]


@pytest.fixture(scope="module")
def regenerated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("pb")
    subprocess.run(
        [sys.executable, "-m", "grpc_tools.protoc"]
        + [f"-Iservice/pb={ROOT / 'proto/nmt/v1'}", f"-I{ROOT / 'proto'}"]
        + [f"--{kind}_out={out}" for kind in ("python", "pyi", "grpc_python")]
        + [f"service/pb/{name}.proto" for name in CONTRACTS],
        check=True,
        cwd=ROOT,
    )
    return out / "service" / "pb"


@pytest.mark.parametrize("name", GENERATED)
def test_the_committed_code_is_what_the_contract_generates(name: str, regenerated: Path) -> None:
    committed = ROOT / "service" / "pb" / name
    assert committed.read_text() == (regenerated / name).read_text(), "run `make proto`"


def test_the_options_on_the_wire_are_those_of_the_search() -> None:
    """But attention, asked for with what is returned; and ids, which nobody outside knows."""
    in_domain = {field.name for field in fields(DecodingOptions)} - {
        "attention",
        "attention_heads",
    }
    on_the_wire = set(pb.DecodingOptions.DESCRIPTOR.fields_by_name)
    assert on_the_wire - in_domain == {"forbid_unknown"}
    assert in_domain - on_the_wire == {"suppress_tokens"}


def test_the_settings_of_a_stream_are_the_fields_of_a_request_with_their_numbers() -> None:
    """But the texts: the server reads the one as the other."""
    of_a_request, of_a_stream = (
        {field.name: (field.number, field.type, field.message_type) for field in message.fields}
        for message in (pb.TranslateRequest.DESCRIPTOR, pb.TranslateStreamSettings.DESCRIPTOR)
    )
    assert of_a_request == of_a_stream | {"contents": of_a_request["contents"]}


@pytest.mark.parametrize(
    ("domain", "wire", "prefix"),
    [
        (FinishReason, pb.FinishReason, "FINISH_REASON_"),
        (Stopping, pb.Stopping, "STOPPING_"),
        (LengthForm, pb.LengthForm, "LENGTH_FORM_"),
        (State, admin_pb2.BundleState, "BUNDLE_STATE_"),
        (Outcome, admin_pb2.FolderOutcome, "FOLDER_OUTCOME_"),
    ],
)
def test_an_enum_on_the_wire_has_the_values_of_the_domain(
    domain: type[Enum], wire: type, prefix: str
) -> None:
    names = {name.removeprefix(prefix) for name in wire.keys()}  # type: ignore[attr-defined]
    assert names == {value.name for value in domain} | {"UNSPECIFIED"}


def test_every_option_can_be_absent() -> None:
    fields_ = pb.DecodingOptions.DESCRIPTOR.fields
    assert all(field.has_presence or field.is_repeated for field in fields_)
