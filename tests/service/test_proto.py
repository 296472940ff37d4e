"""The contract: the committed code is generated from it, and it says what the domain says."""

import subprocess
import sys
from dataclasses import fields
from enum import Enum
from pathlib import Path

import pytest

from service.decoding import DecodingOptions, FinishReason, Stopping
from service.pb import translation_pb2 as pb

ROOT = Path(__file__).parents[2]
GENERATED = ("translation_pb2.py", "translation_pb2.pyi", "translation_pb2_grpc.py")


@pytest.fixture(scope="module")
def regenerated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("pb")
    subprocess.run(
        [sys.executable, "-m", "grpc_tools.protoc", f"-Iservice/pb={ROOT / 'proto/nmt/v1'}"]
        + [f"--{kind}_out={out}" for kind in ("python", "pyi", "grpc_python")]
        + ["service/pb/translation.proto"],
        check=True,
        cwd=ROOT,
    )
    return out / "service" / "pb"


@pytest.mark.parametrize("name", GENERATED)
def test_the_committed_code_is_what_the_contract_generates(name: str, regenerated: Path) -> None:
    committed = ROOT / "service" / "pb" / name
    assert committed.read_text() == (regenerated / name).read_text(), "run `make proto`"


def test_the_options_on_the_wire_are_those_of_the_search() -> None:
    in_domain = {field.name for field in fields(DecodingOptions)} - {"attention"}
    assert set(pb.DecodingOptions.DESCRIPTOR.fields_by_name) == in_domain


@pytest.mark.parametrize(
    ("domain", "wire"), [(FinishReason, pb.FinishReason), (Stopping, pb.Stopping)]
)
def test_an_enum_on_the_wire_has_the_values_of_the_domain(domain: type[Enum], wire: type) -> None:
    prefix = {FinishReason: "FINISH_REASON_", Stopping: "STOPPING_"}[domain]
    names = {name.removeprefix(prefix) for name in wire.keys()}  # type: ignore[attr-defined]
    assert names == {value.name for value in domain} | {"UNSPECIFIED"}


def test_every_option_can_be_absent() -> None:
    assert all(field.has_presence for field in pb.DecodingOptions.DESCRIPTOR.fields)
