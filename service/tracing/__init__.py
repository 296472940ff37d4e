"""Traces of rpcs for OpenTelemetry, in the caller's own trace where it has one.

    nmt.v1.TranslationService/Translate      a span per rpc
    ├── queue    from the first sentence that came to the last that joined a batch
    ├── encode   from the first that joined to the last that was encoded
    └── decode   from there to the last that was finished, with the steps it took

`start_tracer` is the only way to OpenTelemetry, an optional extra: without an endpoint nothing of
it is loaded, and an rpc pays for two calls that do nothing.
"""

from service.tracing.spans import (
    RpcSpan,
    SentenceTimes,
    SilentTracer,
    Tracer,
    current_trace_id,
    sentence_listener,
)
from service.tracing.start import start_tracer

__all__ = [
    "RpcSpan",
    "SentenceTimes",
    "SilentTracer",
    "Tracer",
    "current_trace_id",
    "sentence_listener",
    "start_tracer",
]
