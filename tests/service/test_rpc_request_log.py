"""Every rpc has an id, a span and a line in the log, however it ends."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from service.errors import QueueFull
from service.logs import RequestLog
from service.pb import translation_pb2 as pb
from service.rpc.request_log import RequestInterceptor, note_contents
from service.rpc.status import abort
from service.tracing import SentenceTimes, Tracer, current_trace_id, sentence_listener, start_tracer
from tests.otlp_receiver import attributes, otlp_receiver

NOT_UTF8 = b"\x0a\x02\xff\xfe"  # contents: ["\xff\xfe"]
TEXT = pb.TranslateRequest(contents=["A secret."]).SerializeToString()


async def translate(request: pb.TranslateRequest, context: Any) -> pb.TranslateRequest:
    note_contents(request.contents)
    logging.getLogger("service.x").warning("working")
    return request


async def translate_stream(
    request: pb.TranslateRequest, context: Any
) -> AsyncIterator[pb.TranslateRequest]:
    yield await translate(request, context)


async def refuse(request: pb.TranslateRequest, context: Any) -> None:
    await context.abort(grpc.StatusCode.NOT_FOUND, "no such model")


async def turn_away(request: pb.TranslateRequest, context: Any) -> None:
    await abort(context, QueueFull("too much is waiting", 1.0))


async def fail(request: pb.TranslateRequest, context: Any) -> None:
    raise RuntimeError(f"injected, with {request.contents[0]}")


@asynccontextmanager
async def served(
    behavior: Callable[[pb.TranslateRequest, Any], Any],
    kind: str = "unary_unary",
    tracer: Tracer | None = None,
    unlogged: tuple[str, ...] = (),
) -> AsyncIterator[Any]:
    """A method that takes bytes from here, and whose every call is logged."""
    interceptor = RequestInterceptor(RequestLog("all"), tracer, unlogged)
    server = grpc.aio.server(interceptors=[interceptor])
    make_handler = getattr(grpc, f"{kind}_rpc_method_handler")
    handler = make_handler(
        behavior, pb.TranslateRequest.FromString, pb.TranslateRequest.SerializeToString
    )
    generic = grpc.method_handlers_generic_handler("test.Service", {"Method": handler})
    server.add_generic_rpc_handlers((generic,))
    port = server.add_insecure_port("localhost:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"localhost:{port}") as channel:
        yield getattr(channel, kind)("/test.Service/Method")
    await server.stop(None)


async def id_of(call: Any) -> object:
    """The request id that came back, once the call has ended."""
    if isinstance(call, grpc.aio.UnaryStreamCall):
        assert [response async for response in call]
    await call.code()
    return dict(await call.trailing_metadata()).get("x-request-id")


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [each.__dict__["fields"] for each in caplog.records if each.name == "service.requests"]


@pytest.mark.parametrize(
    ("behavior", "kind"), [(translate, "unary_unary"), (translate_stream, "unary_stream")]
)
def test_a_request_is_one_line_with_the_id_that_its_caller_sent(
    behavior: Any, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with served(behavior, kind) as method:
            call = method(TEXT, metadata=[("x-request-id", "abc")])
            assert await id_of(call) == "abc"

    caplog.set_level("INFO")
    asyncio.run(main())
    [line] = lines(caplog)
    assert line.pop("seconds") >= 0
    assert line == {
        "request_id": "abc",
        "method": "test.Service/Method",
        "code": "OK",
        "texts": 1,
        "characters": 9,
    }


@pytest.mark.parametrize(
    ("behavior", "request_bytes", "code", "reason"),
    [
        (refuse, TEXT, "NOT_FOUND", "no such model"),
        (fail, TEXT, "UNKNOWN", None),
        (translate, NOT_UTF8, "INVALID_ARGUMENT", "the request can't be parsed"),
    ],
)
def test_a_failure_is_logged_with_what_its_caller_was_told(
    behavior: Any,
    request_bytes: bytes,
    code: str,
    reason: str | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> object:
        async with served(behavior) as method:
            return await id_of(method(request_bytes))

    told = asyncio.run(main())
    [line] = lines(caplog)
    assert line["code"] == code and line["request_id"] == told
    assert line.get("reason", "").startswith(reason or "")
    assert "secret" not in str(line)


def test_the_id_comes_back_beside_the_details_of_a_status() -> None:
    async def main() -> set[str]:
        async with served(turn_away) as method:
            call = method(TEXT)
            await call.code()
            return {key for key, _ in await call.trailing_metadata()}

    assert asyncio.run(main()) >= {"x-request-id", "grpc-status-details-bin"}


def test_a_call_that_its_caller_gave_up_is_logged_as_cancelled(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        begun, ended = asyncio.Event(), asyncio.Event()

        async def wait(request: pb.TranslateRequest, context: Any) -> None:
            context.add_done_callback(lambda _: ended.set())
            begun.set()
            await asyncio.Event().wait()

        async with served(wait) as method:
            call = method(TEXT)
            await begun.wait()
            call.cancel()
            await ended.wait()

    asyncio.run(main())
    assert [line["code"] for line in lines(caplog)] == ["CANCELLED"]


def test_a_service_that_is_not_to_be_logged_is_left_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> object:
        async with served(refuse, unlogged=("test.Service",)) as method:
            return await id_of(method(TEXT))

    assert asyncio.run(main()) is None
    assert not lines(caplog)


def test_a_request_is_traced_from_its_caller_to_its_sentences(
    caplog: pytest.LogCaptureFixture,
) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    seen = []

    async def decode(request: pb.TranslateRequest, context: Any) -> pb.TranslateRequest:
        seen.append(current_trace_id())
        listener = sentence_listener()
        assert listener
        listener(SentenceTimes(1.0, 2.0, 3.0, 4.0, num_steps=5))
        return await translate(request, context)

    async def main(tracer: Tracer) -> None:
        async with served(decode, tracer=tracer) as method:
            metadata = [("traceparent", f"00-{trace}-b7ad6b7169203331-01"), ("x-request-id", "abc")]
            await method(TEXT, metadata=metadata)

    with otlp_receiver() as receiver:
        tracer = start_tracer(receiver.endpoint, 0.0, "1")
        asyncio.run(main(tracer))
        tracer.close()
    assert seen == [trace]
    assert list(receiver.spans) == ["queue", "encode", "decode", "test.Service/Method"]
    assert {span.trace_id.hex() for span in receiver.spans.values()} == {trace}
    shown = attributes(receiver.spans["test.Service/Method"].attributes)
    assert (shown["nmt.request_id"], shown["nmt.characters"]) == ("abc", 9)
