"""Every call is counted with the code that its client sees, also those that gRPC would hide."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from prometheus_client import CollectorRegistry

from service.metrics import Metrics
from service.pb import translation_pb2 as pb
from service.rpc import MetricsInterceptor

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


@asynccontextmanager
async def served(behavior: Behavior, kind: str) -> AsyncIterator[tuple[Any, Metrics]]:
    """A method that takes bytes from here and is counted, and its metrics."""
    metrics = Metrics(CollectorRegistry())
    server = grpc.aio.server(interceptors=[MetricsInterceptor(metrics)])
    make_handler = getattr(grpc, f"{kind}_rpc_method_handler")
    handler = make_handler(
        behavior, pb.TranslateRequest.FromString, pb.TranslateRequest.SerializeToString
    )
    generic = grpc.method_handlers_generic_handler("test.Service", {"Method": handler})
    server.add_generic_rpc_handlers((generic,))
    port = server.add_insecure_port("localhost:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"localhost:{port}") as channel:
        yield getattr(channel, kind)("/test.Service/Method"), metrics
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
    [family] = metrics.rpcs_handled.collect()
    return {
        sample.labels["grpc_code"]: sample.value
        for sample in family.samples
        if sample.name.endswith("_total")
    }


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
            assert counts(metrics) == {"OK": 1, "InvalidArgument": 1}

    asyncio.run(scenario())
    assert not logged_by_grpc(caplog)


def test_an_answer_after_the_deadline_is_counted_as_that_and_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        async with served(give_up_late, "unary_unary") as (method, metrics):
            code = await code_of(method, b"", timeout=0.05)
            assert code is grpc.StatusCode.DEADLINE_EXCEEDED
            while not counts(metrics):
                await asyncio.sleep(0)
            assert counts(metrics) == {"DeadlineExceeded": 1}

    asyncio.run(scenario())
    assert not logged_by_grpc(caplog)


def test_a_fault_of_a_handler_is_counted_as_unknown(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with served(fail, "unary_unary") as (method, metrics):
            assert await code_of(method, b"") is grpc.StatusCode.UNKNOWN
            assert counts(metrics) == {"Unknown": 1}

    asyncio.run(scenario())
    assert "injected" in caplog.text
