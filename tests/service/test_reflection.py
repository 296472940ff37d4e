"""Reflection on a real server: what grpcurl and ghz ask, they find."""

from collections.abc import Iterable
from pathlib import Path

import grpc
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpc_reflection.v1alpha.reflection_pb2 import (
    ServerReflectionRequest,
    ServerReflectionResponse,
)

from tests.running_server import RunningServer, running_server


def reflect(
    server: RunningServer, version: str, requests: Iterable[ServerReflectionRequest]
) -> list[ServerReflectionResponse]:
    with grpc.insecure_channel(server.address) as channel:
        call = channel.stream_stream(
            f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
            request_serializer=ServerReflectionRequest.SerializeToString,
            response_deserializer=ServerReflectionResponse.FromString,
        )
        return list(call(iter(requests)))


def messages_in(response: ServerReflectionResponse) -> set[str]:
    files = map(
        FileDescriptorProto.FromString, response.file_descriptor_response.file_descriptor_proto
    )
    return {f"{file.package}.{message.name}" for file in files for message in file.message_type}


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_grpcurl_finds_services_and_messages(version: str, server: RunningServer) -> None:
    listed, described, message = reflect(
        server,
        version,
        [
            ServerReflectionRequest(list_services="*"),
            ServerReflectionRequest(file_containing_symbol="nmt.v1.TranslationService"),
            ServerReflectionRequest(file_containing_symbol="nmt.v1.Attention"),
        ],
    )
    services = {service.name for service in listed.list_services_response.service}
    assert {"nmt.v1.TranslationService", "grpc.health.v1.Health"} <= services
    assert "nmt.v1.TranslateRequest" in messages_in(described) & messages_in(message)


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
def test_every_listed_service_can_be_described(version: str, server: RunningServer) -> None:
    [listed] = reflect(server, version, [ServerReflectionRequest(list_services="*")])
    for service in listed.list_services_response.service:
        request = ServerReflectionRequest(file_containing_symbol=service.name)
        assert messages_in(*reflect(server, version, [request]))


def test_ghz_finds_a_method_by_its_name(server: RunningServer) -> None:
    found, missing = reflect(
        server,
        "v1alpha",
        [
            ServerReflectionRequest(file_containing_symbol=f"nmt.v1.TranslationService.{method}")
            for method in ("Translate", "Invented")
        ],
    )
    assert "nmt.v1.TranslateRequest" in messages_in(found)
    assert missing.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]


def test_reflection_can_be_switched_off(models: Path) -> None:
    with running_server(models, "--reflection=off") as server:
        with pytest.raises(grpc.RpcError) as caught:
            reflect(server, "v1alpha", [ServerReflectionRequest(list_services="*")])
        assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
