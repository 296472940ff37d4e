"""Whatever a message quotes of a request, it arrives, with its status."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from service.errors import InvalidArgument, QueueFull
from service.rpc.status import abort


@asynccontextmanager
async def calling(
    method: Any, options: tuple[tuple[str, Any], ...] = ()
) -> AsyncIterator[Callable[[float | None], Any]]:
    """Calls a method of a real server, each time with the given timeout in seconds."""
    server = grpc.aio.server()
    handlers = {"Method": grpc.unary_unary_rpc_method_handler(method)}
    generic = grpc.method_handlers_generic_handler("test.Service", handlers)
    server.add_generic_rpc_handlers((generic,))
    port = server.add_insecure_port("localhost:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"localhost:{port}", options=options) as channel:
        rpc = channel.unary_unary("/test.Service/Method", None, None)
        yield lambda timeout: rpc(b"", timeout=timeout)
    await server.stop(None)


def answer(error: Exception) -> tuple[grpc.StatusCode, str]:
    """What a client sees of an error, over a real connection."""

    async def fail(request: bytes, context: Any) -> None:
        await abort(context, error)

    async def scenario() -> tuple[grpc.StatusCode, str]:
        async with calling(fail) as call:
            ended = call(None)
            return await ended.code(), await ended.details()

    return asyncio.run(scenario())


def retried(retry_after_seconds: float, backoff: str, timeout: float) -> bytes:
    """What a client gets that retries by itself, of a server whose queue is full once."""
    policy = {
        "maxAttempts": 2,
        "initialBackoff": backoff,
        "maxBackoff": backoff,
        "backoffMultiplier": 1,
        "retryableStatusCodes": ["RESOURCE_EXHAUSTED"],
    }
    config = {"methodConfig": [{"name": [{}], "retryPolicy": policy}]}
    errors: list[Exception] = [QueueFull("full", retry_after_seconds)]

    async def fail_once(request: bytes, context: Any) -> bytes:
        while errors:
            await abort(context, errors.pop())
        return b"done"

    async def scenario() -> bytes:
        async with calling(fail_once, (("grpc.service_config", json.dumps(config)),)) as call:
            result: bytes = await call(timeout)
            return result

    return asyncio.run(scenario())


KINDS: dict[str, Callable[[str], Exception]] = {
    "INVALID_ARGUMENT": InvalidArgument,
    "RESOURCE_EXHAUSTED": lambda message: QueueFull(message, 0.5),
}


@pytest.mark.parametrize("status", KINDS)
@pytest.mark.parametrize("character", ["a", "%", "é", "漢", "😀", "\x00", "\ud800"])
def test_a_message_of_any_characters_arrives_cut(status: str, character: str) -> None:
    code, details = answer(KINDS[status]("model " + character * 100_000))
    assert code.name == status
    assert details.startswith("model ") and details.endswith("…") and len(details) > 200


def test_a_short_message_arrives_as_it_is() -> None:
    assert answer(InvalidArgument("naïve 漢字 100 %"))[1] == "naïve 漢字 100 %"


def test_a_message_is_one_line_without_control_characters() -> None:
    _, details = answer(InvalidArgument("one\ntwo\r\x1b[31m\u2028three"))
    assert details == r"one\ntwo\r\x1b[31m\u2028three"


def test_a_client_that_retries_by_itself_waits_as_long_as_the_server_says() -> None:
    # Its own backoff would take longer than its deadline.
    assert retried(retry_after_seconds=0.01, backoff="100s", timeout=20) == b"done"


def test_a_client_that_can_not_wait_so_long_is_left_to_its_own_backoff() -> None:
    assert retried(retry_after_seconds=100, backoff="0.01s", timeout=20) == b"done"


@pytest.mark.parametrize(
    ("seconds", "timeout", "pushback"), [(0.0001, None, "1"), (2.5, 20, "2500"), (20, 10, None)]
)
def test_the_wait_is_told_to_those_who_can_wait(
    seconds: float, timeout: float | None, pushback: str | None
) -> None:
    async def fail(request: bytes, context: Any) -> None:
        await abort(context, QueueFull("full", seconds))

    async def scenario() -> dict[str, str | bytes]:
        async with calling(fail) as call:
            return dict(await call(timeout).trailing_metadata())

    trailers = asyncio.run(scenario())
    assert trailers.get("grpc-retry-pushback-ms") == pushback
    assert "grpc-status-details-bin" in trailers
