"""Every call is counted with the code that its client sees, also those that gRPC would hide."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from service.metrics import Metrics
from service.pb import translation_pb2 as pb
from service.rpc import (
    HEALTH_SERVICE,
    REFLECTION_SERVICES,
    TRANSLATION_SERVICE,
    MetricsInterceptor,
)

PATIENCE = 30  # seconds until a test gives up; nothing should take any of them
NOT_UTF8 = b"\x0a\x02\xff\xfe"  # contents: ["\xff\xfe"]
Behavior = Callable[[pb.TranslateRequest, Any], Any]


async def echo(request: pb.TranslateRequest, context: Any) -> pb.TranslateRequest:
    return request


async def echo_stream(
    request: pb.TranslateRequest, context: Any
) -> AsyncIterator[pb.TranslateRequest]:
    yield request


async def give_up_late(request: pb.TranslateRequest, context: Any) -> None:
    while context.time_remaining() > 0:
        pass  # without the event loop, on which gRPC would cancel this
    await context.abort(grpc.StatusCode.DEADLINE_EXCEEDED, "too late")


async def fail(request: pb.TranslateRequest, context: Any) -> None:
    raise RuntimeError("injected")


class RefuseSecond(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    """Lets the first call through and no other."""

    def __init__(self) -> None:
        self._calls = 0

    async def intercept_service(self, continuation: Any, details: grpc.HandlerCallDetails) -> Any:
        self._calls += 1
        return await continuation(details) if self._calls == 1 else REFUSING


async def refuse(request: bytes, context: Any) -> None:
    await context.abort(grpc.StatusCode.UNAUTHENTICATED, "no")


REFUSING = grpc.unary_unary_rpc_method_handler(refuse)


@asynccontextmanager
async def served(
    behavior: Behavior,
    kind: str,
    *inner: "grpc.aio.ServerInterceptor[Any, Any]",
    path: str = f"/{TRANSLATION_SERVICE}/Translate",
    trace_id: str = "",
) -> AsyncIterator[tuple[Any, Metrics]]:
    """A method that takes bytes from here and is counted, and its metrics."""
    metrics = Metrics(CollectorRegistry())
    counting = MetricsInterceptor(metrics, [TRANSLATION_SERVICE], lambda: trace_id)
    server = grpc.aio.server(interceptors=[counting, *inner])
    make_handler = getattr(grpc, f"{kind}_rpc_method_handler")
    handler = make_handler(
        behavior, pb.TranslateRequest.FromString, pb.TranslateRequest.SerializeToString
    )
    _, service, method = path.split("/")
    generic = grpc.method_handlers_generic_handler(service, {method: handler})
    server.add_generic_rpc_handlers((generic,))
    port = server.add_insecure_port("localhost:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"localhost:{port}") as channel:
        yield getattr(channel, kind)(path), metrics
    await server.stop(None)


async def code_of(method: Any, request: bytes, timeout: float | None = None) -> grpc.StatusCode:
    call = method(request, timeout=timeout)
    try:
        if hasattr(call, "__aiter__"):
            [_ async for _ in call]
    except grpc.aio.AioRpcError:
        pass
    code: grpc.StatusCode = await call.code()
    return code


def logged_by_grpc(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if record.name.startswith("grpc")]


def counts(metrics: Metrics) -> dict[str, float]:
    """How many calls ended with each code that was seen at all."""
    return {
        sample.labels["grpc_code"]: sample.value
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == "grpc_server_handled_total" and sample.value
    }


async def counts_of(metrics: Metrics, num_calls: int) -> dict[str, float]:
    """`counts`, once so many calls are counted: a status is on its way before its call is."""
    async with asyncio.timeout(PATIENCE):
        while sum(counts(metrics).values()) < num_calls:
            await asyncio.sleep(0)
    return counts(metrics)


@pytest.mark.parametrize(
    ("behavior", "kind"), [(echo, "unary_unary"), (echo_stream, "unary_stream")]
)
def test_a_message_that_cannot_be_parsed_is_refused_and_counted_and_not_logged(
    behavior: Behavior, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with served(behavior, kind) as (method, metrics):
            assert await code_of(method, b"\x0a\x01a") is grpc.StatusCode.OK
            assert await code_of(method, NOT_UTF8) is grpc.StatusCode.INVALID_ARGUMENT
            assert await counts_of(metrics, 2) == {"OK": 1, "InvalidArgument": 1}

    asyncio.run(scenario())
    assert not logged_by_grpc(caplog)


def test_an_answer_after_the_deadline_is_counted_as_that_and_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        async with served(give_up_late, "unary_unary") as (method, metrics):
            code = await code_of(method, b"", timeout=0.05)
            assert code is grpc.StatusCode.DEADLINE_EXCEEDED
            assert await counts_of(metrics, 1) == {"DeadlineExceeded": 1}

    asyncio.run(scenario())
    assert not logged_by_grpc(caplog)


def test_a_fault_of_a_handler_is_counted_as_unknown(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with served(fail, "unary_unary") as (method, metrics):
            assert await code_of(method, b"") is grpc.StatusCode.UNKNOWN
            assert await counts_of(metrics, 1) == {"Unknown": 1}

    asyncio.run(scenario())
    assert "injected" in caplog.text


def test_a_later_interceptor_is_asked_at_every_call_and_its_refusals_are_counted() -> None:
    async def scenario() -> None:
        async with served(echo, "unary_unary", RefuseSecond()) as (method, metrics):
            assert await code_of(method, b"") is grpc.StatusCode.OK
            assert await code_of(method, b"") is grpc.StatusCode.UNAUTHENTICATED
            assert await counts_of(metrics, 2) == {"OK": 1, "Unauthenticated": 1}

    asyncio.run(scenario())


def test_a_method_of_no_service_is_answered_and_not_counted() -> None:
    async def scenario() -> None:
        async with served(echo, "unary_unary", path="/typed.by/Client") as (method, metrics):
            assert await code_of(method, b"") is grpc.StatusCode.OK
            assert b"typed" not in generate_latest(metrics.registry)

    asyncio.run(scenario())


def test_every_rpc_of_a_service_is_shown_with_its_kind_before_its_first_call() -> None:
    registry = CollectorRegistry()
    services = [TRANSLATION_SERVICE, HEALTH_SERVICE, *REFLECTION_SERVICES]
    MetricsInterceptor(Metrics(registry), services)
    kinds = {
        (sample.labels["grpc_service"], sample.labels["grpc_method"]): sample.labels["grpc_type"]
        for family in registry.collect()
        for sample in family.samples
        if sample.name == "grpc_server_started_total"
    }
    assert {service for service, _ in kinds} == set(services)
    assert kinds[TRANSLATION_SERVICE, "Translate"] == "unary"
    assert kinds[HEALTH_SERVICE, "Watch"] == "server_stream"
    assert {kinds[name, "ServerReflectionInfo"] for name in REFLECTION_SERVICES} == {"bidi_stream"}


@pytest.mark.parametrize(
    ("trace_id", "exemplars"), [("4bf92f35", [{"trace_id": "4bf92f35"}]), ("", [])]
)
def test_a_calls_bucket_points_to_its_trace_if_it_has_one(
    trace_id: str, exemplars: list[dict[str, str]]
) -> None:
    async def scenario() -> None:
        async with served(echo, "unary_unary", trace_id=trace_id) as (method, metrics):
            await code_of(method, b"")
            exposed = openmetrics.generate_latest(metrics.registry).decode()
            assert exemplars == [
                sample.exemplar.labels
                for family in text_string_to_metric_families(exposed)
                for sample in family.samples
                if sample.exemplar
            ]

    asyncio.run(scenario())
