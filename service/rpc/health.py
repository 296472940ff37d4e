"""grpc.health.v1 for the server ("") and each model, by name.

Unlike the packaged servicer, it starts as NOT_SERVING and ends its Watch streams on shutdown, which
would otherwise hold up the drain for its whole grace period.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any, TypeAlias

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthServicer, add_HealthServicer_to_server

HEALTH_SERVICE = "grpc.health.v1.Health"
_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


class Health(HealthServicer):  # type: ignore[misc]  # untyped
    """All names change together: NOT_SERVING, `serve()` SERVING, `shut_down()` NOT_SERVING.

    To be used on the event loop's thread.
    """

    def __init__(self, models: Iterable[str]) -> None:
        self._names = frozenset(["", *models])
        self._status = HealthCheckResponse.NOT_SERVING
        self._is_final = False
        self._changed = asyncio.Event()

    def serve(self) -> None:
        """The models are loaded and warmed up. Nothing, after a shutdown has begun."""
        if not self._is_final:
            self._change(HealthCheckResponse.SERVING)

    def shut_down(self) -> None:
        """Tells every watcher NOT_SERVING and ends its stream."""
        self._is_final = True
        self._change(HealthCheckResponse.NOT_SERVING)

    async def Check(self, request: HealthCheckRequest, context: _Context) -> HealthCheckResponse:
        if request.service not in self._names:
            fault = "no model of this name; ListModels has those there are"
            await context.abort(grpc.StatusCode.NOT_FOUND, fault)
        return HealthCheckResponse(status=self._status)

    async def Watch(
        self, request: HealthCheckRequest, context: _Context
    ) -> AsyncIterator[HealthCheckResponse]:
        is_known = request.service in self._names
        sent = None
        while True:
            status = self._status if is_known else HealthCheckResponse.SERVICE_UNKNOWN
            if status != sent:
                sent = status
                yield HealthCheckResponse(status=status)
            elif self._is_final:
                return
            else:
                await self._changed.wait()

    def _change(self, status: "HealthCheckResponse.ServingStatus") -> None:
        self._status = status
        self._changed.set()
        self._changed = asyncio.Event()


def add_health(server: grpc.aio.Server, health: Health) -> None:
    """Answers health checks with `health`."""
    add_HealthServicer_to_server(health, server)
