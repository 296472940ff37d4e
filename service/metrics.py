"""Every metric of the service, declared once: the names, labels and buckets dashboards rely on.

The registry is an argument, nothing is global. Label values come from closed sets: served models,
registered rpcs, gRPC's codes, the reasons below; never what a client typed. `Metrics.rpc` and
`Metrics.model` resolve labels beforehand, so that counting costs a few microseconds; what they
return may be called from any thread.
"""

from collections.abc import Callable
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from service.decoding import FinishReason

# At most 15 bounds each: from below a greedy sentence to beyond any deadline, and around one step.
LATENCY_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
STEP_BUCKETS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5)

# Go's names of the codes, as far as they aren't the words in title case.
_GO_SPELLING = {"OK": "OK", "CANCELLED": "Canceled"}
_LOSS_REASONS = ("cancelled", "expired", "failed")
_RPC = ("grpc_type", "grpc_service", "grpc_method")
_MODEL = ("model",)
_MODEL_INFO = ("version", "source_language", "target_language", "architecture", "precision")


class Metrics:
    """The metrics of one server, registered with `registry`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        counter = partial(Counter, registry=registry)
        gauge = partial(Gauge, registry=registry)
        latency = partial(Histogram, registry=registry, buckets=LATENCY_BUCKETS)
        step = partial(Histogram, registry=registry, buckets=STEP_BUCKETS)

        # The grpc-ecosystem's names, labels and spelling of codes: its dashboards and alerts fit.
        self.rpcs_started = counter("grpc_server_started", "Rpcs that arrived.", _RPC)
        self.rpcs_handled = counter("grpc_server_handled", "Rpcs that ended.", (*_RPC, "grpc_code"))
        self.rpc_seconds = latency("grpc_server_handling_seconds", "Arrival to end of rpcs.", _RPC)

        self.build = gauge("nmt_build_info", "Always 1; what runs.", ("version",))
        self.models = gauge("nmt_model_info", "Always 1; what is served.", _MODEL + _MODEL_INFO)
        self.waiting = gauge("nmt_waiting_sentences", "Sentences that wait to join.", _MODEL)
        self.rows = gauge("nmt_rows_in_flight", "Rows (sentences x beams) in batches.", _MODEL)
        self.queue_seconds = latency("nmt_queue_seconds", "Wait of sentences to join.", _MODEL)
        self.sentence_seconds = latency(
            "nmt_sentence_seconds", "Acceptance to answer of translated sentences.", _MODEL
        )
        self.step_seconds = step("nmt_step_seconds", "One token in every row of a batch.", _MODEL)
        self.step_rows = counter("nmt_step_rows", "Rows decoded, summed over steps.", _MODEL)
        self.encode_seconds = step("nmt_encode_seconds", "Encoding a batch's newcomers.", _MODEL)
        self.source_tokens = counter("nmt_source_tokens", "Source tokens encoded.", _MODEL)
        self.target_tokens = counter("nmt_target_tokens", "Target tokens answered.", _MODEL)
        self.finished = counter(
            "nmt_finished_sentences", "Sentences translated.", (*_MODEL, "finish_reason")
        )
        self.lost = counter(
            "nmt_lost_sentences", "Sentences accepted and not translated.", (*_MODEL, "reason")
        )
        self.refused = counter("nmt_refused_sentences", "Sentences the queue refused.", _MODEL)

    def rpc(self, kind: str, service: str, method: str) -> "RpcMetrics":
        """The counters of one rpc; `kind` is unary, server_stream, client_stream or bidi_stream."""
        return RpcMetrics(self, (kind, service, method))

    def model(self, name: str) -> "ModelMetrics":
        """The counters of one served model: its engine's Observer."""
        return ModelMetrics(self, name)

    def describe_model(
        self,
        name: str,
        version: str,
        languages: tuple[str, str],
        architecture: str,
        precision: str,
    ) -> None:
        """Shows what is served in nmt_model_info."""
        self.models.labels(name, version, *languages, architecture, precision).set(1)


class RpcMetrics:
    """Counts the calls of one rpc."""

    def __init__(self, metrics: Metrics, labels: tuple[str, str, str]) -> None:
        self.started = metrics.rpcs_started.labels(*labels).inc
        self._seconds = metrics.rpc_seconds.labels(*labels).observe
        self._handled = partial(metrics.rpcs_handled.labels, *labels)
        self._by_code: dict[str, Callable[[], None]] = {}

    def handled(self, code: str, seconds: float) -> None:
        """A call ended with a gRPC code, spelled "OK" or "INVALID_ARGUMENT"."""
        self._seconds(seconds)
        count = self._by_code.get(code)
        if count is None:
            spelled = _GO_SPELLING.get(code, code.title().replace("_", ""))
            count = self._by_code[code] = self._handled(spelled).inc
        count()


class ModelMetrics:
    """The engine's Observer for one model. Every series exists from the start, at zero."""

    def __init__(self, metrics: Metrics, name: str) -> None:
        self._waiting = metrics.waiting.labels(name)
        self._rows = metrics.rows.labels(name)
        self._queue_seconds = metrics.queue_seconds.labels(name).observe
        self._sentence_seconds = metrics.sentence_seconds.labels(name).observe
        self._step_seconds = metrics.step_seconds.labels(name).observe
        self._step_rows = metrics.step_rows.labels(name).inc
        self._encode_seconds = metrics.encode_seconds.labels(name).observe
        self._source_tokens = metrics.source_tokens.labels(name).inc
        self._target_tokens = metrics.target_tokens.labels(name).inc
        self._finished = {r: metrics.finished.labels(name, r.value).inc for r in FinishReason}
        self._lost = {reason: metrics.lost.labels(name, reason).inc for reason in _LOSS_REASONS}
        self._refused = metrics.refused.labels(name).inc

    def watch(self, *, waiting: Callable[[], float], rows: Callable[[], float]) -> None:
        """Reads the two gauges when Prometheus asks, so that no step pays for them."""
        self._waiting.set_function(waiting)
        self._rows.set_function(rows)

    def queued(self, seconds: float) -> None:
        self._queue_seconds(seconds)

    def encoded(self, tokens: int, seconds: float) -> None:
        self._encode_seconds(seconds)
        self._source_tokens(tokens)

    def stepped(self, rows: int, seconds: float) -> None:
        self._step_seconds(seconds)
        self._step_rows(rows)

    def finished(self, reason: FinishReason, tokens: int, seconds: float) -> None:
        self._finished[reason]()
        self._target_tokens(tokens)
        self._sentence_seconds(seconds)

    def cancelled(self) -> None:
        self._lost["cancelled"]()

    def expired(self) -> None:
        self._lost["expired"]()

    def failed(self) -> None:
        self._lost["failed"]()

    def refused(self, sentences: int) -> None:
        self._refused(sentences)
