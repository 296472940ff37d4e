"""Traces: in the caller's own trace, with what happened inside, at a real collector."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextvars import copy_context

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from service.tracing import SentenceTimes, current_trace_id, sentence_listener, start_tracer
from tests.otlp_receiver import Receiver, attributes, otlp_receiver

METHOD = "nmt.v1.TranslationService/Translate"
TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with otlp_receiver() as collecting:
        yield collecting


def traceparent(kept: bool) -> list[tuple[str, str | bytes]]:
    return [("other-bin", b"\0"), ("traceparent", f"00-{TRACE}-{PARENT}-0{kept:d}")]


def trace_rpc(
    receiver: Receiver,
    code: str = "OK",
    *,
    rate: float = 1.0,
    metadata: list[tuple[str, str | bytes]] | None = None,
    sentences: tuple[SentenceTimes, ...] = (),
) -> str | None:
    """Serves and sends one rpc; returns the trace id that the code that served it saw."""
    tracer = start_tracer(receiver.endpoint, rate, "1.2.3")

    def serve() -> str | None:
        span = tracer.begin(METHOD, metadata or [])
        if listener := sentence_listener():
            for sentence in sentences:
                listener(sentence)
        seen = current_trace_id()
        span.end(code, {"request_id": "abc", "sentences": 2})
        return seen

    seen = copy_context().run(serve)
    tracer.close()
    return seen


def test_an_rpc_is_a_span_of_its_callers_trace(receiver: Receiver) -> None:
    assert trace_rpc(receiver, metadata=traceparent(True)) == TRACE
    [span] = receiver.spans.values()
    assert (span.name, span.kind) == (METHOD, Span.SPAN_KIND_SERVER)
    assert (span.trace_id.hex(), span.parent_span_id.hex()) == (TRACE, PARENT)
    assert attributes(span.attributes) == {
        "rpc.system.name": "grpc",
        "rpc.method": METHOD,
        "rpc.response.status_code": "OK",
        "nmt.request_id": "abc",
        "nmt.sentences": 2,
    }
    sender = receiver.resource
    assert (sender["service.name"], sender["service.version"]) == ("attention-nmt", "1.2.3")


def test_an_rpc_from_nowhere_begins_a_trace(receiver: Receiver) -> None:
    seen = trace_rpc(receiver)
    assert receiver.spans[METHOD].trace_id.hex() == seen != TRACE
    assert receiver.spans[METHOD].parent_span_id == b""


def test_of_the_traces_begun_here_the_wanted_share_is_kept(receiver: Receiver) -> None:
    assert trace_rpc(receiver, rate=0.0) is None
    assert not receiver.spans


@pytest.mark.parametrize("kept", [True, False])
def test_what_the_caller_decided_stands(receiver: Receiver, kept: bool) -> None:
    trace_id = trace_rpc(receiver, rate=0.0 if kept else 1.0, metadata=traceparent(kept))
    assert trace_id == (TRACE if kept else None)
    assert list(receiver.spans) == ([METHOD] if kept else [])


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("INTERNAL", Status.STATUS_CODE_ERROR),
        ("DEADLINE_EXCEEDED", Status.STATUS_CODE_ERROR),
        ("INVALID_ARGUMENT", Status.STATUS_CODE_UNSET),
        ("RESOURCE_EXHAUSTED", Status.STATUS_CODE_UNSET),
    ],
)
def test_only_a_fault_of_the_server_is_an_error(receiver: Receiver, code: str, status: int) -> None:
    trace_rpc(receiver, code)
    assert receiver.spans[METHOD].status.code == status


def test_queue_encode_and_decode_are_spans_below_with_their_steps(receiver: Receiver) -> None:
    begun = time.monotonic()
    at = [begun + seconds for seconds in (0.0, 0.25, 0.5, 0.75, 1.0)]
    before = time.time_ns()
    trace_rpc(
        receiver,
        sentences=(
            SentenceTimes(at[0], at[1], at[2], at[3], num_steps=7),
            SentenceTimes(at[0], at[2], at[3], at[4], num_steps=9),
        ),
    )
    rpc = receiver.spans.pop(METHOD)
    assert {span.parent_span_id for span in receiver.spans.values()} == {rpc.span_id}
    assert {span.trace_id for span in receiver.spans.values()} == {rpc.trace_id}
    queue, encode, decode = (receiver.spans[name] for name in ("queue", "encode", "decode"))
    origin = queue.start_time_unix_nano
    assert abs(origin - before) < 60e9
    times = [
        (
            round((time - origin) / 1e6)
            for time in (span.start_time_unix_nano, span.end_time_unix_nano)
        )
        for span in (queue, encode, decode)
    ]
    assert [tuple(pair) for pair in times] == [(0, 500), (250, 750), (500, 1000)]
    counts = attributes(decode.attributes)
    assert counts == {"nmt.sentences": 2, "nmt.steps": 16, "nmt.max_steps": 9}


def test_without_an_endpoint_nothing_is_traced_and_nothing_is_loaded() -> None:
    code = (
        "import sys; from service.tracing import current_trace_id, start_tracer;"
        f"start_tracer('', 1.0, '1').begin({METHOD!r}, []).end('OK', {{}});"
        "print(current_trace_id(), 'opentelemetry' in sys.modules)"
    )
    assert run(code).stdout == "None False\n"


def test_an_endpoint_without_the_extra_stops_the_start_with_what_to_install() -> None:
    code = (
        "import sys; sys.modules['opentelemetry'] = None; from service.tracing import start_tracer;"
        "start_tracer('http://localhost:4317', 1.0, '1')"
    )
    done = run(code)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("service.errors.ConfigError: --otlp-endpoint: ")
    assert last.endswith("pip install 'attention-nmt[trace]'")


def test_a_collector_that_does_not_answer_holds_nothing_up() -> None:
    with socket.create_server(("localhost", 0)) as silent:
        code = (
            "from service.tracing import start_tracer;"
            f"tracer = start_tracer('http://localhost:{silent.getsockname()[1]}', 1.0, '1');"
            f"tracer.begin({METHOD!r}, []).end('OK', {{}}); tracer.close(0.1); print('closed')"
        )
        done = run(code)
    assert done.returncode == 0 and done.stdout == "closed\n"
    assert "could not be sent within 0.1 s" in done.stderr


def run(code: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
