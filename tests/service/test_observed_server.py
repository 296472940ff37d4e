"""A real server tells of a request in its log and in a trace, as its file of settings says."""

import json
import signal
from pathlib import Path
from typing import Any

import grpc

from service.pb import translation_pb2 as pb
from service.pb.translation_pb2_grpc import TranslationServiceStub
from tests.otlp_receiver import attributes, otlp_receiver
from tests.running_server import running_server

TRACE = "0af7651916cd43dd8448eb211c80319c"
TEXT = "Two young women are walking."
METHOD = "nmt.v1.TranslationService/Translate"


def lines_of(log: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.splitlines()]


def test_a_request_is_a_line_of_json_and_a_trace(models: Path, tmp_path: Path) -> None:
    metadata = [
        ("x-request-id", "abc"),
        ("traceparent", f"00-{TRACE}-b7ad6b7169203331-01"),
    ]
    with otlp_receiver() as receiver:
        settings = tmp_path / "server.toml"
        settings.write_text(
            "log_format = 'json'\nrequest_log = 'all'\ndefault_model = 'tiny-transformer'\n"
            f"otlp_endpoint = '{receiver.endpoint}'\ntrace_rate = 0\n"
        )
        flags, log_file = ("--config", str(settings)), tmp_path / "log"
        with running_server(models, *flags, log_file=log_file) as server:
            with grpc.insecure_channel(server.address) as channel:
                request = pb.TranslateRequest(contents=[TEXT])
                TranslationServiceStub(channel).Translate(request, metadata=metadata)
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait() == 0
            log = server.log()
    [line] = [each for each in lines_of(log) if each["logger"] == "service.requests"]
    known = {"request_id": "abc", "trace_id": TRACE, "method": METHOD, "code": "OK", "texts": 1}
    assert known.items() <= line.items()
    assert line["model"].startswith("tiny-transformer@") and line["target_tokens"] > 0
    assert TEXT not in log
    span = receiver.spans[METHOD]
    assert span.trace_id.hex() == TRACE
    assert attributes(span.attributes)["nmt.source_tokens"] == line["source_tokens"]
    below = [receiver.spans[name] for name in ("queue", "encode", "decode")]
    assert {each.parent_span_id for each in below} == {span.span_id}
    times = [span.start_time_unix_nano]
    for each in below:
        times += [each.start_time_unix_nano, each.end_time_unix_nano]
    assert times == sorted(times) and times[-1] <= span.end_time_unix_nano
    counts = attributes(below[-1].attributes)
    assert counts["nmt.sentences"] == 1 and counts["nmt.steps"] >= line["target_tokens"]
