"""The service configs for clients: gRPC takes them, and does what they say."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from service.pb import translation_pb2 as pb
from service.pb.translation_pb2_grpc import TranslationServiceStub
from tests.running_server import RunningServer, running_server

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "clients"
NAMES = sorted(path.name for path in FOLDER.iterdir())
REQUEST = pb.TranslateRequest(contents=["The soup needs more salt."])


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running_server(ROOT / "models") as server:
        yield server


@contextmanager
def stub(address: str, config: str) -> Iterator[Any]:
    options = [("grpc.service_config", config), ("grpc.enable_retries", 1)]
    with grpc.insecure_channel(address, options=options) as channel:
        yield TranslationServiceStub(channel)


@contextmanager
def refusing(code: grpc.StatusCode, times: int) -> Iterator[tuple[str, list[str]]]:
    """A server that refuses so many requests, then answers; its address, and what it was asked."""
    asked: list[str] = []

    def translate(request: bytes, context: grpc.ServicerContext) -> bytes:
        asked.append("Translate")
        if len(asked) <= times:
            context.abort(code, "not now")
        return pb.TranslateResponse().SerializeToString()

    handlers = {"Translate": grpc.unary_unary_rpc_method_handler(translate)}
    server = grpc.server(ThreadPoolExecutor(2))
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("nmt.v1.TranslationService", handlers),)
    )
    port = server.add_insecure_port("localhost:0")
    server.start()
    try:
        yield f"localhost:{port}", asked
    finally:
        server.stop(None).wait()


@pytest.mark.parametrize("name", NAMES)
def test_a_client_with_it_translates(name: str, server: RunningServer) -> None:
    with stub(server.address, (FOLDER / name).read_text()) as client:
        assert client.Translate(REQUEST).translations[0].translated_text


def test_a_config_that_grpc_does_not_take_fails_the_call(server: RunningServer) -> None:
    broken = json.loads((FOLDER / "retries.json").read_text())
    broken["methodConfig"][0]["retryPolicy"]["maxAttempts"] = 1
    with stub(server.address, json.dumps(broken)) as client:
        with pytest.raises(grpc.RpcError, match="maxAttempts"):
            client.Translate(REQUEST, timeout=5)


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED])
def test_what_another_server_may_answer_is_tried_again(code: grpc.StatusCode) -> None:
    with refusing(code, times=3) as (address, asked):
        with stub(address, (FOLDER / "retries.json").read_text()) as client:
            client.Translate(REQUEST)
    assert len(asked) == 4


@pytest.mark.parametrize("code", [grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.INTERNAL])
def test_what_every_server_would_refuse_is_not(code: grpc.StatusCode) -> None:
    with refusing(code, times=3) as (address, asked):
        with stub(address, (FOLDER / "retries.json").read_text()) as client:
            with pytest.raises(grpc.RpcError):
                client.Translate(REQUEST)
    assert len(asked) == 1


@pytest.mark.parametrize("name", NAMES)
def test_it_is_about_every_method_of_the_service(name: str) -> None:
    [method] = json.loads((FOLDER / name).read_text())["methodConfig"]
    assert method["name"] == [
        {"service": pb.DESCRIPTOR.services_by_name["TranslationService"].full_name}
    ]


def test_hedging_and_retries_are_the_same_but_for_how_they_try_again() -> None:
    retries, hedging = (
        json.loads((FOLDER / f"{name}.json").read_text()) for name in ("retries", "hedging")
    )
    policy, hedge = (
        retries["methodConfig"][0].pop("retryPolicy"),
        hedging["methodConfig"][0].pop("hedgingPolicy"),
    )
    assert retries == hedging
    assert policy["retryableStatusCodes"] == hedge["nonFatalStatusCodes"]
