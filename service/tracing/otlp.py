"""Spans for OpenTelemetry, sent in batches by a thread of its own: the only part that imports it.

Names are those of the semantic conventions for RPC where they have one, else `nmt.*`. The OTEL_*
variables of the SDK hold, for headers, batches and the resource, except where the server's own
settings say otherwise.
"""

import logging
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock, Thread

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import Span, SpanKind, StatusCode, format_trace_id, set_span_in_context
from opentelemetry.trace import Tracer as OtelTracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from service.tracing.spans import Metadata, RpcSpan, SentenceTimes, enter

_LOG = logging.getLogger(__name__)
# The server's own faults; of the others the caller is to blame.
_FAULTS = {
    "UNKNOWN",
    "DEADLINE_EXCEEDED",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
}


class OtlpTracer:
    """Keeps a share of the traces that begin here, and of the others what their caller keeps."""

    def __init__(self, endpoint: str, rate: float, version: str) -> None:
        resource = Resource.create({"service.name": "attention-nmt", "service.version": version})
        self._provider = TracerProvider(
            resource=resource.merge(OTELResourceDetector().detect()),
            sampler=ParentBased(TraceIdRatioBased(rate)),
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint)))
        self._tracer = self._provider.get_tracer("service", version)
        self._propagator = TraceContextTextMapPropagator()

    def begin(self, method: str, metadata: Metadata) -> RpcSpan:
        """As in `Tracer`."""
        headers = {key: value for key, value in metadata if isinstance(value, str)}
        span = self._tracer.start_span(
            method,
            self._propagator.extract(headers),
            SpanKind.SERVER,
            {"rpc.system.name": "grpc", "rpc.method": method},
        )
        rpc = _OtlpSpan(self._tracer, span)
        enter(rpc)
        return rpc

    def close(self, timeout: float = 5.0) -> None:
        """As in `Tracer`."""
        # The SDK waits half a minute for a collector that has gone.
        thread = Thread(target=self._provider.shutdown, name="traces", daemon=True)
        thread.start()
        thread.join(timeout)
        if thread.is_alive():
            _LOG.warning("the last traces could not be sent within %g s", timeout)


@dataclass(slots=True)
class _Phases:
    """When sentences passed the engine, all together: a stream has any number of them."""

    first_enqueued: float = math.inf
    first_joined: float = math.inf
    last_joined: float = -math.inf
    first_encoded: float = math.inf
    last_encoded: float = -math.inf
    last_finished: float = -math.inf
    num_sentences: int = 0
    num_steps: int = 0
    max_steps: int = 0

    def add(self, sentence: SentenceTimes) -> None:
        self.first_enqueued = min(self.first_enqueued, sentence.enqueued)
        self.first_joined = min(self.first_joined, sentence.joined)
        self.last_joined = max(self.last_joined, sentence.joined)
        self.first_encoded = min(self.first_encoded, sentence.encoded)
        self.last_encoded = max(self.last_encoded, sentence.encoded)
        self.last_finished = max(self.last_finished, sentence.finished)
        self.num_sentences += 1
        self.num_steps += sentence.num_steps
        self.max_steps = max(self.max_steps, sentence.num_steps)


class _OtlpSpan:
    """The span of an rpc; its sentences become spans below it when it ends, three in all."""

    def __init__(self, tracer: OtelTracer, span: Span) -> None:
        self._tracer = tracer
        self._span = span
        self._phases = _Phases()
        self._lock = Lock()
        self._epoch_ns = time.time_ns() - time.monotonic_ns()
        context = span.get_span_context()
        is_kept = context.trace_flags.sampled
        self.trace_id = format_trace_id(context.trace_id) if is_kept else None

    def add(self, sentence: SentenceTimes) -> None:
        """As in `RpcSpan`."""
        with self._lock:
            self._phases.add(sentence)

    def end(self, code: str, attributes: Mapping[str, str | int]) -> None:
        """As in `RpcSpan`."""
        with self._lock:  # of a failed rpc some may still come
            if self._phases.num_sentences:
                self._add_phases(self._phases)
        self._span.set_attributes({f"nmt.{name}": value for name, value in attributes.items()})
        self._span.set_attribute("rpc.response.status_code", code)
        if code in _FAULTS:
            self._span.set_status(StatusCode.ERROR)
        self._span.end()

    def _add_phases(self, phases: _Phases) -> None:
        """A long rpc's sentences pass the engine side by side: its phases may overlap."""
        counts = {
            "nmt.sentences": phases.num_sentences,
            "nmt.steps": phases.num_steps,
            "nmt.max_steps": phases.max_steps,
        }
        self._add_phase("queue", phases.first_enqueued, phases.last_joined, {})
        self._add_phase("encode", phases.first_joined, phases.last_encoded, {})
        self._add_phase("decode", phases.first_encoded, phases.last_finished, counts)

    def _add_phase(
        self, name: str, start: float, end: float, attributes: Mapping[str, int]
    ) -> None:
        context = set_span_in_context(self._span)
        span = self._tracer.start_span(
            name, context, attributes=attributes, start_time=self._epoch(start)
        )
        span.end(self._epoch(end))

    def _epoch(self, seconds: float) -> int:
        """Nanoseconds since 1970 of a time on the monotonic clock."""
        return self._epoch_ns + int(seconds * 1e9)
