"""`Metrics`: all that one server tells Prometheus."""

from collections import defaultdict
from collections.abc import Callable
from threading import Lock
from typing import Literal, TypeAlias, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, ProcessCollector

from service.metrics.model import ModelFamilies, ModelMetrics
from service.metrics.rpc import RpcFamilies, RpcMetrics

# How a look at a bundle's folder ended.
ReloadOutcome: TypeAlias = Literal["loaded", "unloaded", "unchanged", "failed"]
_MODEL_INFO = (
    "model",
    "version",
    "source_language",
    "target_language",
    "architecture",
    "precision",
    "device",
)


class Metrics:
    """The metrics of one server, registered with `registry`: its own, its rpcs', its models'.

    The memory, CPU time and file descriptors of the process are among them (`process_...`).
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        ProcessCollector(registry=registry)
        self._rpcs = RpcFamilies(registry)
        self._model_families = ModelFamilies(registry)
        self._models: dict[str, ModelMetrics] = {}
        self._models_lock = Lock()
        self._described: defaultdict[tuple[str, str], list[tuple[str, ...]]] = defaultdict(list)

        self.build = Gauge(
            "nmt_build_info", "Always 1; what runs.", ("version",), registry=registry
        )
        self._info = Gauge(
            "nmt_model_info", "Always 1; what is served.", _MODEL_INFO, registry=registry
        )
        self._load_seconds = Gauge(
            "nmt_model_load_seconds",
            "Verifying, loading and warming up a model, the last time.",
            ("model",),
            registry=registry,
        )
        self.failed_bundles = Gauge(
            "nmt_failed_bundles",
            "Folders that can't be served as they are, or are gone though needed.",
            registry=registry,
        )
        reloads = Counter(
            "nmt_reloads", "Bundles looked at to be reloaded.", ("outcome",), registry=registry
        )
        self._reloads = {
            outcome: reloads.labels(outcome).inc for outcome in get_args(ReloadOutcome)
        }

    def watch_certificate(self, expires: Callable[[], float]) -> None:
        """Shows when the server's certificate ends; for servers that have one.

        expires: in Unix seconds; asked at every scrape, on any thread.
        """
        Gauge(
            "nmt_certificate_expiry_timestamp_seconds",
            "When the certificate ends that new connections are shown.",
            registry=self.registry,
        ).set_function(expires)

    def rpc(self, kind: str, service: str, method: str) -> RpcMetrics:
        """The counters of one rpc; `kind` is unary, server_stream, client_stream or bidi_stream."""
        return RpcMetrics(self._rpcs, (kind, service, method))

    def model(self, name: str) -> ModelMetrics:
        """The counters of one served model: the Observer that all of its engines share."""
        with self._models_lock:
            if name not in self._models:
                self._models[name] = ModelMetrics(self._model_families, name)
            return self._models[name]

    def describe_model(
        self,
        name: str,
        version: str,
        languages: tuple[str, str],
        architecture: str,
        precision: str,
        device: str,
    ) -> None:
        """Shows in nmt_model_info what is served, and on which device it really runs."""
        labels = (name, version, *languages, architecture, precision, device)
        self._described[name, version].append(labels)
        self._info.labels(*labels).set(1)

    def forget_model(self, name: str, version: str) -> None:
        """Takes the oldest description of a version back: it isn't served any more.

        A bundle may change and keep its version; then the new one is still described.
        """
        descriptions = self._described[name, version]
        if not descriptions:
            return
        labels = descriptions.pop(0)
        if labels not in descriptions:
            self._info.remove(*labels)

    def load_seconds(self, model: str, seconds: float) -> None:
        """A model was verified, loaded and warmed up in that time."""
        self._load_seconds.labels(model).set(seconds)

    def reload(self, outcome: ReloadOutcome) -> None:
        """A bundle was looked at to be reloaded."""
        self._reloads[outcome]()
