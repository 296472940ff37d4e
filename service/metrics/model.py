"""What the engines of a model tell: the queue, the batches, and how every sentence ended."""

from collections.abc import Callable
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from service.decoding import FinishReason
from service.errors import Refusal
from service.metrics.buckets import LATENCY_BUCKETS, STEP_BUCKETS

_MODEL = ("model",)
_LOSS_REASONS = ("cancelled", "expired", "failed")


class ModelFamilies:
    """The metrics of all models of one server, each labelled with `model`."""

    def __init__(self, registry: CollectorRegistry) -> None:
        counter = partial(Counter, registry=registry)
        gauge = partial(Gauge, registry=registry)
        latency = partial(Histogram, registry=registry, buckets=LATENCY_BUCKETS)
        step = partial(Histogram, registry=registry, buckets=STEP_BUCKETS)

        self.waiting = gauge("nmt_waiting_sentences", "Sentences that wait to join.", _MODEL)
        self.rows = gauge("nmt_rows_in_flight", "Rows (sentences x beams) in batches.", _MODEL)
        self.max_rows = gauge("nmt_max_rows", "Rows that have room in all batches.", _MODEL)
        self.queue_seconds = latency("nmt_queue_seconds", "Wait of sentences to join.", _MODEL)
        self.first_token_seconds = latency(
            "nmt_first_token_seconds", "Acceptance of sentences to their first token.", _MODEL
        )
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
        self.refused = counter(
            "nmt_refused_sentences", "Sentences that were not accepted.", (*_MODEL, "reason")
        )
        self.restarts = counter("nmt_worker_restarts", "Workers that died and came back.", _MODEL)


class ModelMetrics:
    """The Observer of every engine of one model: of its old and its new version, while both run."""

    def __init__(self, families: ModelFamilies, name: str) -> None:
        self._waiting = _Sum(families.waiting.labels(name))
        self._rows = _Sum(families.rows.labels(name))
        self._max_rows = _Sum(families.max_rows.labels(name))
        self._queue_seconds = families.queue_seconds.labels(name).observe
        self._first_token_seconds = families.first_token_seconds.labels(name).observe
        self._sentence_seconds = families.sentence_seconds.labels(name).observe
        self._step_seconds = families.step_seconds.labels(name).observe
        self._step_rows = families.step_rows.labels(name).inc
        self._encode_seconds = families.encode_seconds.labels(name).observe
        self._source_tokens = families.source_tokens.labels(name).inc
        self._target_tokens = families.target_tokens.labels(name).inc
        self._finished = {r: families.finished.labels(name, r.value).inc for r in FinishReason}
        self._lost = {reason: families.lost.labels(name, reason).inc for reason in _LOSS_REASONS}
        self._refused = {r: families.refused.labels(name, r.value).inc for r in Refusal}
        self._restarted = families.restarts.labels(name).inc

    def watch(
        self,
        *,
        waiting: Callable[[], float],
        rows: Callable[[], float],
        max_rows: int,
    ) -> Callable[[], None]:
        """Reads an engine's gauges when Prometheus asks, so that no step pays for them.

        Several engines add up. max_rows: that all workers of the engine decode at once. Returns
        what ends it for this engine.
        """
        ends = (
            self._waiting.add(waiting),
            self._rows.add(rows),
            self._max_rows.add(lambda: max_rows),
        )

        def unwatch() -> None:
            for end in ends:
                end()

        return unwatch

    def queued(self, seconds: float) -> None:
        self._queue_seconds(seconds)

    def first_stepped(self, seconds: float) -> None:
        self._first_token_seconds(seconds)

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

    def refused(self, sentences: int, reason: Refusal) -> None:
        self._refused[reason](sentences)

    def worker_restarted(self) -> None:
        self._restarted()


class _Sum:
    """A gauge that is the sum of functions which come and go."""

    def __init__(self, gauge: Gauge) -> None:
        self._parts: dict[object, Callable[[], float]] = {}
        gauge.set_function(lambda: sum(part() for part in tuple(self._parts.values())))

    def add(self, part: Callable[[], float]) -> Callable[[], None]:
        """Adds a function; returns what takes it out again, once or more often."""
        key = object()
        self._parts[key] = part

        def remove() -> None:
            self._parts.pop(key, None)

        return remove
