"""A collector of traces, as small as it can be: a real OTLP/gRPC server that keeps every span."""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as pb
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import (
    TraceServiceServicer,
    add_TraceServiceServicer_to_server,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass
class Receiver(TraceServiceServicer):
    """What it was sent: spans by name, and the attributes of the process that sent them."""

    endpoint: str = ""
    spans: dict[str, Span] = field(default_factory=dict)
    resource: dict[str, object] = field(default_factory=dict)

    def Export(
        self, request: pb.ExportTraceServiceRequest, context: grpc.ServicerContext
    ) -> pb.ExportTraceServiceResponse:
        for sender in request.resource_spans:
            self.resource |= attributes(sender.resource.attributes)
            for scope in sender.scope_spans:
                self.spans |= {span.name: span for span in scope.spans}
        return pb.ExportTraceServiceResponse()


@contextmanager
def otlp_receiver() -> Iterator[Receiver]:
    """Collects on a free port until the end of the block."""
    receiver = Receiver()
    with ThreadPoolExecutor(1) as pool:
        server = grpc.server(pool)
        add_TraceServiceServicer_to_server(receiver, server)
        receiver.endpoint = f"http://localhost:{server.add_insecure_port('localhost:0')}"
        server.start()
        try:
            yield receiver
        finally:
            server.stop(None).wait()


def attributes(pairs: Iterable[KeyValue]) -> dict[str, object]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: AnyValue) -> object:
    kind = value.WhichOneof("value")
    return getattr(value, kind) if kind else None
