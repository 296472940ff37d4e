"""Counts the rpcs of the server's services in the metrics, whoever implements them."""

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

import grpc
from google.protobuf.descriptor_pool import Default as default_pool

from service.metrics import Metrics, RpcMetrics
from service.rpc.wrapping import Begin, Context, Ended, Wrapper

# (request streams, response streams) -> the grpc-ecosystem's name.
_KINDS = {
    (False, False): "unary",
    (False, True): "server_stream",
    (True, False): "client_stream",
    (True, True): "bidi_stream",
}


class MetricsInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    """Counts every call with the code that its client sees, refusals of later interceptors too.

    Methods of no service aren't counted: their names are the client's, and labels are a closed set.

    services: full names; their rpcs are shown at zero before their first call.
    trace_id: the id of the trace of the current call, if it has one, for exemplars. It is asked
    within what earlier interceptors have set up.
    """

    def __init__(
        self,
        metrics: Metrics,
        services: Iterable[str],
        trace_id: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._counted = {
            f"/{service}/{method}": _counting(metrics.rpc(kind, service, method), trace_id)
            for service in services
            for method, kind in _methods(service)
        }
        self._wrapper = Wrapper(self._counted.__getitem__)

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        # Asked at every call: an interceptor behind this one may refuse the one and not the other.
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        return (
            self._wrapper.wrap(method, handler) if handler and method in self._counted else handler
        )


def _methods(service: str) -> Iterator[tuple[str, str]]:
    """Names and kinds of a service's methods, from its descriptor."""
    # Reflection v1 is v1alpha under another name, and its own descriptor isn't there.
    described = service.replace("grpc.reflection.v1.", "grpc.reflection.v1alpha.")
    for method in default_pool().FindServiceByName(described).methods:
        yield method.name, _KINDS[method.client_streaming, method.server_streaming]


def _counting(rpc: RpcMetrics, trace_id: Callable[[], str | None]) -> Begin:
    def begin(context: Context) -> Ended:
        rpc.started()
        started = time.perf_counter()
        return lambda code: rpc.handled(code, time.perf_counter() - started, trace_id())

    return begin
