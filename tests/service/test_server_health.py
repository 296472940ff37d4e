"""What health says of a server: of its models, of an engine that is down, and of the process."""

import asyncio
from pathlib import Path

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from service.config import ServerConfig
from service.pb import translation_pb2 as pb
from service.pb.translation_pb2_grpc import TranslationServiceStub
from service.rpc import Health
from service.server.exposure import exposures
from service.server.vitals import PATIENCE_SECONDS, Vitals
from tests.gate import Clock
from tests.running_server import RunningServer
from tests.started_server import code_of, engine_of, health_of, started

SERVING, NOT_SERVING = HealthCheckResponse.SERVING, HealthCheckResponse.NOT_SERVING
UNKNOWN = HealthCheckResponse.SERVICE_UNKNOWN
NAMES = ("", "tiny-bahdanau", "tiny-transformer")


def test_the_server_lives_but_is_not_ready_until_its_models_are_loaded(models: Path) -> None:
    async def scenario() -> None:
        async with started(models) as (server, channel):
            stub = TranslationServiceStub(channel)
            assert await health_of(channel) == NOT_SERVING
            assert await health_of(channel, "liveness") == SERVING
            code = await code_of(stub.ListModels(pb.ListModelsRequest()))
            assert code is grpc.StatusCode.UNAVAILABLE
            await server.load()
            assert [await health_of(channel, name) for name in NAMES] == [SERVING] * 3
            assert len((await stub.ListModels(pb.ListModelsRequest())).models) == 2

    asyncio.run(scenario())


def test_a_watcher_sees_a_model_appear_and_load(models: Path) -> None:
    async def scenario() -> None:
        async with started(models) as (server, channel):
            watch = HealthStub(channel).Watch(HealthCheckRequest(service="tiny-bahdanau"))
            seen = [(await watch.read()).status]
            loading = asyncio.create_task(server.load())
            while seen[-1] != SERVING:
                seen.append((await watch.read()).status)
            await loading
            assert seen == [UNKNOWN, NOT_SERVING, SERVING]

    asyncio.run(scenario())


def test_health_knows_no_other_names(server: RunningServer) -> None:
    with grpc.insecure_channel(server.address) as channel:
        with pytest.raises(grpc.RpcError) as caught:
            HealthStub(channel).Check(HealthCheckRequest(service="nobody"))
        assert caught.value.code() is grpc.StatusCode.NOT_FOUND
        watch = HealthStub(channel).Watch(HealthCheckRequest(service="nobody"))
        assert next(watch).status == UNKNOWN
        watch.cancel()


def test_a_server_is_ready_while_any_of_its_models_works_and_ends_after_a_minute_without(
    models: Path,
) -> None:
    async def scenario() -> None:
        async with started(models) as (server, channel):
            await server.load()
            clock = Clock()
            vitals = Vitals(server.catalog, server.health, clock)

            async def told(now: float, *names: str) -> list[int]:
                clock.now = now
                vitals.look()
                return [await health_of(channel, name) for name in names]

            engine_of(server, "tiny-bahdanau").close()
            assert await told(0, *NAMES) == [SERVING, NOT_SERVING, SERVING]
            assert await told(PATIENCE_SECONDS, "liveness") == [SERVING], "another model works"
            engine_of(server, "tiny-transformer").close()
            assert await told(PATIENCE_SECONDS, *NAMES) == [NOT_SERVING] * 3
            assert await told(2 * PATIENCE_SECONDS - 1, "liveness") == [SERVING]
            assert await told(2 * PATIENCE_SECONDS, "liveness") == [NOT_SERVING]

    asyncio.run(scenario())


def test_nothing_is_ready_after_a_shutdown_has_begun() -> None:
    async def scenario() -> None:
        health = Health()
        health.shut_down()
        health.update({"one": True}, is_ready=True, is_live=True)
        statuses = [
            (await health.Check(HealthCheckRequest(service=name), None)).status  # type: ignore[arg-type]
            for name in ("", "one", "liveness")
        ]
        assert statuses == [NOT_SERVING, NOT_SERVING, SERVING]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("settings", "warnings"),
    [
        ({}, []),
        ({"host": "127.0.0.1", "admin": True}, []),
        ({"host": "[::1]"}, []),
        ({"host": "0.0.0.0"}, ["whoever reaches it may translate", "texts cross"]),
        ({"host": "0.0.0.0", "tokens_file": "t"}, ["texts and tokens cross the network"]),
        ({"host": "[::]", "tls_certificate": "c", "tls_key": "k"}, ["may translate"]),
        (
            {
                "host": "0.0.0.0",
                "tls_certificate": "c",
                "tls_key": "k",
                "tls_client_ca": "a",
                "admin": True,
            },
            [],
        ),
        (
            {"admin": True, "admin_host": "0.0.0.0"},
            ["whoever reaches it may load and unload models", "texts cross"],
        ),
    ],
)
def test_what_the_network_may_do_is_said_at_the_start(
    settings: dict[str, object], warnings: list[str]
) -> None:
    said = list(exposures(ServerConfig(**settings)))  # type: ignore[arg-type]
    assert len(said) == len(warnings)
    for warning, expected in zip(said, warnings, strict=True):
        assert expected in warning
