"""Tokens on a real server: who may call, what a refusal costs, and that no token is ever shown."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest
from grpc_reflection.v1alpha.reflection_pb2_grpc import ServerReflectionStub

from service.pb import admin_pb2
from service.pb import translation_pb2 as pb
from service.pb.admin_pb2_grpc import AdminServiceStub
from tests.running_server import RunningServer, eventually, run_service, running_server

TOKEN, OTHER, WRONG = "the-web-shops-token-1", "the-archives-token-22", "not-one-of-them-4711"
REQUEST = pb.TranslateRequest(contents=["Two young women are walking."], model="tiny-transformer")
NO_MESSAGE = b"\xff\xff\xff"
Metadata = tuple[tuple[str, str], ...]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokens")
    (folder / "tokens").write_text(f"{TOKEN}\n{OTHER}\n")
    return folder


@pytest.fixture(scope="module")
def closed(models: Path, folder: Path) -> Iterator[RunningServer]:
    """A server that wants tokens, and logs as much as it can but for texts."""
    flags = (f"--tokens-file={folder / 'tokens'}", "--log-level=debug", "--request-log=all")
    admin = ("--admin=on", "--admin-port=0")
    with running_server(models, *flags, *admin, log_file=folder / "log") as server:
        yield server


def bearer(token: str) -> Metadata:
    return (("authorization", f"Bearer {token}"),)


def api_key(token: str) -> Metadata:
    return (("x-api-key", token),)


def call(
    server: RunningServer, metadata: Metadata, request: bytes = REQUEST.SerializeToString()
) -> tuple[grpc.StatusCode, str]:
    """Code and message of a call of Translate."""
    with grpc.insecure_channel(server.address) as channel:
        method = channel.unary_unary("/nmt.v1.TranslationService/Translate", None, None)
        ended: Any = method.future(request, metadata=metadata)
        return ended.code(), ended.details()


@pytest.mark.parametrize(
    "metadata",
    [
        bearer(TOKEN),
        bearer(OTHER),
        api_key(TOKEN),
        (("authorization", f"bearer  {TOKEN}"),),
        (*api_key(WRONG), *bearer(TOKEN)),
    ],
)
def test_a_call_with_a_token_is_answered(closed: RunningServer, metadata: Metadata) -> None:
    assert call(closed, metadata)[0] is grpc.StatusCode.OK


@pytest.mark.parametrize(
    ("metadata", "fault"),
    [
        ((), "no token; send"),
        ((("authorization", TOKEN),), "no token; send"),
        ((("authorization", f"Basic {TOKEN}"),), "no token; send"),
        (bearer(WRONG), "no such token; send"),
        (bearer(""), "no such token; send"),
        (api_key(WRONG), "no such token; send"),
        (bearer(TOKEN[:-1]), "no such token; send"),
        (bearer(f"{TOKEN}, {OTHER}"), "no such token; send"),
    ],
)
def test_a_call_without_one_is_refused_however_often_others_were_answered(
    closed: RunningServer, metadata: Metadata, fault: str
) -> None:
    assert call(closed, bearer(TOKEN))[0] is grpc.StatusCode.OK
    code, message = call(closed, metadata)
    assert code is grpc.StatusCode.UNAUTHENTICATED
    assert message.startswith(fault)


def test_a_refusal_is_counted_and_costs_neither_parsing_nor_tokenising(
    closed: RunningServer,
) -> None:
    labels = {"grpc_method": "Translate", "grpc_code": "Unauthenticated"}
    refused = closed.sample("grpc_server_handled_total", **labels)
    tokens = closed.sample("nmt_source_tokens_total")
    assert call(closed, bearer(WRONG))[0] is grpc.StatusCode.UNAUTHENTICATED
    assert call(closed, bearer(WRONG), NO_MESSAGE)[0] is grpc.StatusCode.UNAUTHENTICATED
    assert call(closed, bearer(TOKEN), NO_MESSAGE)[0] is grpc.StatusCode.INVALID_ARGUMENT
    assert closed.sample("grpc_server_handled_total", **labels) == refused + 2
    assert closed.sample("nmt_source_tokens_total") == tokens


def test_health_needs_no_token(closed: RunningServer) -> None:
    with grpc.insecure_channel(closed.address) as channel:
        answer = HealthStub(channel).Check(HealthCheckRequest())
        assert answer.status == HealthCheckResponse.SERVING


def test_reflection_needs_a_token(closed: RunningServer) -> None:
    with grpc.insecure_channel(closed.address) as channel:
        reflect = ServerReflectionStub(channel).ServerReflectionInfo
        request = ServerReflectionRequest(list_services="*")
        [answer] = reflect(iter([request]), metadata=bearer(TOKEN))
        assert answer.list_services_response.service
        refused = reflect(iter([request]), metadata=bearer(WRONG))
        assert refused.code() is grpc.StatusCode.UNAUTHENTICATED


def test_the_admin_port_needs_a_token(closed: RunningServer) -> None:
    with grpc.insecure_channel(f"localhost:{closed.admin_port}") as channel:
        list_bundles = AdminServiceStub(channel).ListBundles
        assert list_bundles(admin_pb2.ListBundlesRequest(), metadata=api_key(TOKEN)).bundles
        with pytest.raises(grpc.RpcError) as caught:
            list_bundles(admin_pb2.ListBundlesRequest())
        assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_a_token_works_from_when_it_is_in_the_file_until_it_is_not(
    models: Path, tmp_path: Path
) -> None:
    file = tmp_path / "tokens"
    file.write_text(TOKEN)
    with running_server(models, f"--tokens-file={file}") as server:
        assert call(server, bearer(OTHER))[0] is grpc.StatusCode.UNAUTHENTICATED
        file.write_text(f"{TOKEN}\n{OTHER}")
        eventually(lambda: call(server, bearer(OTHER))[0] is grpc.StatusCode.OK)
        assert call(server, bearer(TOKEN))[0] is grpc.StatusCode.OK
        file.write_text(OTHER)
        eventually(lambda: call(server, bearer(TOKEN))[0] is grpc.StatusCode.UNAUTHENTICATED)


def test_an_empty_file_of_tokens_stops_the_start(models: Path, tmp_path: Path) -> None:
    (tmp_path / "tokens").touch()
    flags = ("--port=0", "--metrics-port=0", f"--tokens-file={tmp_path / 'tokens'}")
    result = run_service("serve", f"--models={models}", *flags)
    assert result.returncode == 2
    assert f"--tokens-file: {tmp_path / 'tokens'} holds no token" in result.stderr


def test_no_token_is_shown_in_logs_metrics_or_messages(closed: RunningServer, folder: Path) -> None:
    shown = [
        call(closed, metadata, request)[1]
        for token in (TOKEN, WRONG)
        for metadata in (bearer(token), api_key(token), (("authorization", token),))
        for request in (REQUEST.SerializeToString(), NO_MESSAGE)
    ]
    whole = (folder / "tokens").read_text()
    (folder / "tokens").write_text(f"{whole}{WRONG} {WRONG}\n")
    eventually(lambda: call(closed, bearer(TOKEN)) and "line 3: a token has" in closed.log())
    (folder / "tokens").write_text(whole)
    shown += [closed.log(), closed.metrics(), closed.banner]
    for token in (TOKEN, OTHER, WRONG):
        assert token not in "\n".join(shown)
