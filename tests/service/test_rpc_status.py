"""Whatever a message quotes of a request, it arrives, with its status."""

import asyncio
from collections.abc import Callable
from typing import Any

import grpc
import pytest

from service.errors import InvalidArgument, QueueFull
from service.rpc.status import abort


def answer(error: Exception) -> tuple[grpc.StatusCode, str]:
    """What a client sees of an error, over a real connection."""

    async def fail(request: bytes, context: Any) -> None:
        await abort(context, error)

    async def scenario() -> tuple[grpc.StatusCode, str]:
        server = grpc.aio.server()
        handlers = {"Method": grpc.unary_unary_rpc_method_handler(fail)}
        generic = grpc.method_handlers_generic_handler("test.Service", handlers)
        server.add_generic_rpc_handlers((generic,))
        port = server.add_insecure_port("localhost:0")
        await server.start()
        async with grpc.aio.insecure_channel(f"localhost:{port}") as channel:
            call = channel.unary_unary("/test.Service/Method", None, None)(b"")
            code, details = await call.code(), await call.details()
        await server.stop(None)
        return code, details

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
