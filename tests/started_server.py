"""A server of the test's own process and event loop, whose parts the test can reach."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest
from grpc_health.v1.health_pb2_grpc import HealthStub

from service.config import ServerConfig
from service.engine import Engine
from service.server import Server


@asynccontextmanager
async def started(
    models: Path, **settings: object
) -> AsyncIterator[tuple[Server, grpc.aio.Channel]]:
    """A server that hasn't loaded its models, and a channel to it."""
    config = ServerConfig(models=models, port=0, metrics_port=0, **settings)  # type: ignore[arg-type]
    server = Server(config)
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"localhost:{server.port}") as channel:
            yield server, channel
    finally:
        await server.stop()
        await server.close()


def engine_of(server: Server, name: str) -> Engine:
    return server.catalog.router.choose(name).translator.engine


async def code_of(call: Awaitable[object]) -> grpc.StatusCode:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def until(condition: Callable[[], bool]) -> None:
    """Lets the other tasks run until it is so; the test's timeout bounds it."""
    while not condition():
        await asyncio.sleep(0)


async def health_of(channel: grpc.aio.Channel, name: str = "") -> int:
    status: int = (await HealthStub(channel).Check(HealthCheckRequest(service=name))).status
    return status
