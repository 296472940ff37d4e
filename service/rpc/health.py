"""grpc.health.v1: is the server ready, is each model, and does the process live.

    ""          readiness   some model is served whose engine works; not while models load, and not
                            from the first moment of a shutdown on
    a model     readiness   the model is served and its engine works
    "liveness"  liveness    false only where nothing but a restart helps; true while models load and
                            while accepted requests are finished

Unlike the packaged servicer, it starts as NOT_SERVING, and names come and go with the models.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, TypeAlias

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthServicer, add_HealthServicer_to_server

HEALTH_SERVICE = "grpc.health.v1.Health"
LIVENESS = "liveness"
_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"
_Status: TypeAlias = "HealthCheckResponse.ServingStatus"


class Health(HealthServicer):  # type: ignore[misc]  # untyped
    """What `update` was told last, until `shut_down`: from then on NOT_SERVING but for liveness.

    To be used on the event loop's thread.
    """

    def __init__(self) -> None:
        self._works: Mapping[str, bool] = {"": False, LIVENESS: True}
        self._is_shut_down = False
        self._is_ended = False
        self._changed = asyncio.Event()

    def update(self, models: Mapping[str, bool], *, is_ready: bool, is_live: bool) -> None:
        """Whether each model can work, the server as a whole, and the process lives."""
        works = {**models, "": is_ready, LIVENESS: is_live}
        if works != self._works:
            self._works = works
            self._tell()

    def shut_down(self) -> None:
        """Tells every watcher NOT_SERVING, whatever `update` is told later."""
        self._is_shut_down = True
        self._tell()

    def end_watches(self) -> None:
        """Ends every Watch, which would otherwise hold up a drain for its whole time."""
        self._is_ended = True
        self._tell()

    async def Check(self, request: HealthCheckRequest, context: _Context) -> HealthCheckResponse:
        status = self._status(request.service)
        if status == HealthCheckResponse.SERVICE_UNKNOWN:
            fault = "no model of this name; ListModels has those there are"
            await context.abort(grpc.StatusCode.NOT_FOUND, fault)
        return HealthCheckResponse(status=status)

    async def Watch(
        self, request: HealthCheckRequest, context: _Context
    ) -> AsyncIterator[HealthCheckResponse]:
        sent = None
        while True:
            changed, status = self._changed, self._status(request.service)
            if status != sent:
                sent = status
                yield HealthCheckResponse(status=status)
            elif self._is_ended:
                return
            else:
                await changed.wait()

    def _status(self, name: str) -> _Status:
        if name not in self._works:
            return HealthCheckResponse.SERVICE_UNKNOWN
        is_open = name == LIVENESS or not self._is_shut_down
        if is_open and self._works[name]:
            return HealthCheckResponse.SERVING
        return HealthCheckResponse.NOT_SERVING

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def add_health(server: grpc.aio.Server, health: Health) -> None:
    """Answers health checks with `health`."""
    add_HealthServicer_to_server(health, server)
