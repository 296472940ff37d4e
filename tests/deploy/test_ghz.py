"""The ghz configurations: keys that ghz knows, data that the contract takes, a server that answers.

ghz itself isn't needed: what it asks reflection, and the requests that it then sends, are sent.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import json_format
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest

from service.pb import translation_pb2 as pb
from tests.running_server import RunningServer, running_server
from tests.service.test_reflection import reflect

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "ghz"
LOADS = ("constant", "step", "soak")
CONFIGS = [f"{load}{suffix}.json" for load in LOADS for suffix in ("", "-attention")]


def is_duration(value: object) -> bool:
    """Go's time.ParseDuration, as far as configurations need it."""
    return isinstance(value, str) and bool(re.fullmatch(r"(\d+(\.\d+)?(ms|s|m|h))+", value))


def is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def is_switch(value: object) -> bool:
    return isinstance(value, bool)


def one_of(*values: str) -> Callable[[object], bool]:
    return lambda value: value in values


# The long names of https://ghz.sh/docs/options, which are the keys of its configuration files
# (https://ghz.sh/docs/example_config), with what each takes. Those of streaming, binary data,
# protos and output are left out: nothing here has use for them.
DOCUMENTED_KEYS: dict[str, Callable[[object], bool]] = {
    "async": is_switch,
    "authority": is_text,
    "cacert": is_text,
    "call": is_text,
    "cert": is_text,
    "cname": is_text,
    "concurrency": is_count,
    "concurrency-end": is_count,
    "concurrency-max-duration": is_duration,
    "concurrency-schedule": one_of("const", "step", "line"),
    "concurrency-start": is_count,
    "concurrency-step": lambda value: type(value) is int,
    "concurrency-step-duration": is_duration,
    "connect-timeout": is_duration,
    "connections": is_count,
    "count-errors": is_switch,
    "cpus": is_count,
    "data-file": is_text,
    "duration": is_duration,
    "duration-stop": one_of("close", "wait", "ignore"),
    "enable-compression": is_switch,
    "host": is_text,
    "insecure": is_switch,
    "keepalive": is_duration,
    "key": is_text,
    "load-end": is_count,
    "load-max-duration": is_duration,
    "load-schedule": one_of("const", "step", "line"),
    "load-start": is_count,
    "load-step": lambda value: type(value) is int,
    "load-step-duration": is_duration,
    "max-duration": is_duration,
    "metadata": lambda value: isinstance(value, dict),
    "name": is_text,
    "rps": is_count,
    "timeout": is_duration,
    "total": is_count,
}


def read(name: str) -> Any:
    return json.loads((FOLDER / name).read_text("utf-8"))


def data_of(name: str) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = json.loads((ROOT / read(name)["data-file"]).read_text("utf-8"))
    return messages


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running_server(ROOT / "models") as server:
        yield server


def test_there_is_a_configuration_of_each_load_with_and_without_attention() -> None:
    data = {path.name for path in FOLDER.glob("sentences*.json")}
    assert {path.name for path in FOLDER.iterdir()} == {*CONFIGS, *data}


@pytest.mark.parametrize("name", CONFIGS)
def test_every_key_and_value_is_one_that_ghz_documents(name: str) -> None:
    config = read(name)
    assert config.keys() <= DOCUMENTED_KEYS.keys()
    assert [key for key, value in config.items() if not DOCUMENTED_KEYS[key](value)] == []


@pytest.mark.parametrize("load", LOADS)
def test_attention_is_the_only_difference_between_the_two_of_a_load(load: str) -> None:
    plain, attention = read(f"{load}.json"), read(f"{load}-attention.json")
    assert {key for key in plain if plain[key] != attention[key]} == {"name", "data-file"}
    assert data_of(f"{load}-attention.json") == [
        {**message, "includeAttention": True} for message in data_of(f"{load}.json")
    ]


def test_a_step_load_reaches_its_end_before_its_time_is_up() -> None:
    config = read("step.json")
    steps = (config["load-end"] - config["load-start"]) / config["load-step"]
    seconds = int(config["load-step-duration"].removesuffix("s"))
    assert steps * seconds < 60 * int(config["duration"].removesuffix("m"))


@pytest.mark.parametrize("name", CONFIGS)
def test_the_data_are_varied_requests_and_no_templates(name: str) -> None:
    messages = data_of(name)
    requests = [json_format.ParseDict(message, pb.TranslateRequest()) for message in messages]
    texts = [text for request in requests for text in request.contents]
    lengths = {len(text.split()) for text in texts}
    assert len(set(texts)) == len(texts) > 40 and len(lengths) > 10
    assert {len(request.contents) for request in requests} > {1}
    assert not any("{{" in text for text in texts)  # ghz would evaluate it


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_reflection_describes_the_method_and_all_that_it_needs(
    version: str, server: RunningServer
) -> None:
    files = reflected_files(server, version, read("constant.json")["call"])
    service, _, method = read("constant.json")["call"].rpartition(".")
    found = pool_of(files).FindServiceByName(service).FindMethodByName(method)
    assert found.input_type.full_name == pb.TranslateRequest.DESCRIPTOR.full_name


@pytest.mark.parametrize("name", ["constant.json", "constant-attention.json"])
def test_every_request_is_answered_as_reflection_describes_it(
    name: str, server: RunningServer
) -> None:
    service, _, method = read(name)["call"].rpartition(".")
    pool = pool_of(reflected_files(server, "v1alpha", read(name)["call"]))
    described = pool.FindServiceByName(service).FindMethodByName(method)
    request_class = GetMessageClass(described.input_type)
    with grpc.insecure_channel(server.address) as channel:
        call = channel.unary_unary(
            f"/{service}/{method}",
            request_serializer=request_class.SerializeToString,
            response_deserializer=GetMessageClass(described.output_type).FromString,
        )
        for message in data_of(name):
            request = json_format.ParseDict(message, request_class())
            response: Any = call(request, timeout=60)
            assert len(response.translations) == len(message["contents"])
            hypothesis = response.translations[0].sentences[0].hypotheses[0]
            assert hypothesis.HasField("attention") == ("attention" in name)


def reflected_files(
    server: RunningServer, version: str, symbol: str
) -> dict[str, FileDescriptorProto]:
    """By name, the file of a symbol and all that it imports: asked for as ghz does."""
    files: dict[str, FileDescriptorProto] = {}
    wanted = [ServerReflectionRequest(file_containing_symbol=symbol)]
    while wanted:
        for response in reflect(server, version, wanted):
            for data in response.file_descriptor_response.file_descriptor_proto:
                file = FileDescriptorProto.FromString(data)
                files[file.name] = file
        imports = {name for file in files.values() for name in file.dependency}
        asked = {request.file_by_filename for request in wanted}
        missing = imports - files.keys()
        assert not missing & asked, f"reflection knows nothing of {missing & asked}"
        wanted = [ServerReflectionRequest(file_by_filename=name) for name in sorted(missing)]
    return files


def pool_of(files: dict[str, FileDescriptorProto]) -> DescriptorPool:
    pool = DescriptorPool()

    def add(name: str) -> None:
        for imported in files[name].dependency:
            add(imported)
        pool.Add(files[name])

    for name in files:
        add(name)
    return pool
