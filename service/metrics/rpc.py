"""What every rpc tells, in the names, labels and spelling of the grpc-ecosystem.

Its dashboards and alerts fit: go-grpc-middleware's `providers/prometheus` is the model.
"""

from collections.abc import Callable
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Histogram

from service.metrics.buckets import LATENCY_BUCKETS

# gRPC's codes in the spelling of Go, which the ecosystem's label has.
CODES = {
    "OK": "OK",
    "CANCELLED": "Canceled",
    "UNKNOWN": "Unknown",
    "INVALID_ARGUMENT": "InvalidArgument",
    "DEADLINE_EXCEEDED": "DeadlineExceeded",
    "NOT_FOUND": "NotFound",
    "ALREADY_EXISTS": "AlreadyExists",
    "PERMISSION_DENIED": "PermissionDenied",
    "RESOURCE_EXHAUSTED": "ResourceExhausted",
    "FAILED_PRECONDITION": "FailedPrecondition",
    "ABORTED": "Aborted",
    "OUT_OF_RANGE": "OutOfRange",
    "UNIMPLEMENTED": "Unimplemented",
    "INTERNAL": "Internal",
    "UNAVAILABLE": "Unavailable",
    "DATA_LOSS": "DataLoss",
    "UNAUTHENTICATED": "Unauthenticated",
}
_LABELS = ("grpc_type", "grpc_service", "grpc_method")


class RpcFamilies:
    """The metrics of all rpcs of one server."""

    def __init__(self, registry: CollectorRegistry) -> None:
        counter = partial(Counter, registry=registry)
        self.started = counter("grpc_server_started", "Rpcs that arrived.", _LABELS)
        self.handled = counter("grpc_server_handled", "Rpcs that ended.", (*_LABELS, "grpc_code"))
        self.seconds = Histogram(
            "grpc_server_handling_seconds",
            "Arrival to end of rpcs.",
            _LABELS,
            registry=registry,
            buckets=LATENCY_BUCKETS,
        )


class RpcMetrics:
    """Counts the calls of one rpc; `labels` are its kind, its service and its method."""

    def __init__(self, families: RpcFamilies, labels: tuple[str, str, str]) -> None:
        self.started: Callable[[], None] = families.started.labels(*labels).inc
        self._seconds = families.seconds.labels(*labels).observe
        self._handled = {
            code: families.handled.labels(*labels, spelled).inc for code, spelled in CODES.items()
        }

    def handled(self, code: str, seconds: float, trace_id: str | None = None) -> None:
        """A call ended with a gRPC code, spelled "OK" or "INVALID_ARGUMENT".

        trace_id: of the call's trace, if it has one: the exemplar of its bucket.
        """
        self._seconds(seconds, {"trace_id": trace_id} if trace_id else None)
        self._handled[code]()
