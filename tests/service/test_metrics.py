"""Metrics: the numbers move with what happened, and labels stay closed sets."""

from functools import partial
from inspect import signature

import pytest
from prometheus_client import CollectorRegistry

from service.decoding import FinishReason
from service.engine import Observer
from service.errors import Refusal
from service.metrics import LATENCY_BUCKETS, STEP_BUCKETS, Metrics, ModelMetrics

RPC = {"grpc_type": "unary", "grpc_service": "nmt.v1.TranslationService", "grpc_method": "M"}
MODEL = {"model": "m"}


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def model(registry: CollectorRegistry) -> ModelMetrics:
    return Metrics(registry).model("m")


def gauges(registry: CollectorRegistry) -> tuple[float | None, ...]:
    names = ("nmt_waiting_sentences", "nmt_rows_in_flight", "nmt_max_rows")
    return tuple(registry.get_sample_value(name, MODEL) for name in names)


def series(registry: CollectorRegistry, name: str) -> list[dict[str, str]]:
    """The label sets that a metric has."""
    return [
        sample.labels
        for family in registry.collect()
        for sample in family.samples
        if sample.name == name
    ]


def test_an_rpc_is_counted_when_it_starts_and_when_it_ends(registry: CollectorRegistry) -> None:
    rpc = Metrics(registry).rpc(*RPC.values())
    assert registry.get_sample_value("grpc_server_handled_total", {**RPC, "grpc_code": "OK"}) == 0
    rpc.started()
    rpc.started()
    rpc.handled("OK", 0.25)
    assert registry.get_sample_value("grpc_server_started_total", RPC) == 2
    assert registry.get_sample_value("grpc_server_handled_total", {**RPC, "grpc_code": "OK"}) == 1
    assert registry.get_sample_value("grpc_server_handling_seconds_sum", RPC) == 0.25


@pytest.mark.parametrize(
    ("code", "spelled"),
    [
        ("OK", "OK"),
        ("INVALID_ARGUMENT", "InvalidArgument"),
        ("CANCELLED", "Canceled"),
        ("INTERNAL", "Internal"),
    ],
)
def test_codes_are_spelled_as_the_ecosystems_dashboards_expect(
    code: str, spelled: str, registry: CollectorRegistry
) -> None:
    Metrics(registry).rpc(*RPC.values()).handled(code, 0)
    labels = {**RPC, "grpc_code": spelled}
    assert registry.get_sample_value("grpc_server_handled_total", labels) == 1


def test_a_models_metrics_are_an_observer_of_its_engine() -> None:
    told = {name: call for name, call in vars(Observer).items() if not name.startswith("_")}
    assert "stepped" in told
    for name, call in told.items():
        assert signature(getattr(ModelMetrics, name)) == signature(call), name


def test_a_step_counts_its_time_and_its_rows(
    registry: CollectorRegistry, model: ModelMetrics
) -> None:
    model.stepped(3, 0.5)
    model.stepped(2, 0.25)
    assert registry.get_sample_value("nmt_step_seconds_count", MODEL) == 2
    assert registry.get_sample_value("nmt_step_seconds_sum", MODEL) == 0.75
    assert registry.get_sample_value("nmt_step_rows_total", MODEL) == 5


def test_a_finished_sentence_counts_its_reason_and_its_tokens(
    registry: CollectorRegistry, model: ModelMetrics
) -> None:
    model.finished(FinishReason.LENGTH_LIMIT, 16, 0.5)
    labels = {**MODEL, "finish_reason": "length_limit"}
    assert registry.get_sample_value("nmt_finished_sentences_total", labels) == 1
    assert registry.get_sample_value("nmt_target_tokens_total", MODEL) == 16


@pytest.mark.parametrize("reason", ["cancelled", "expired", "failed"])
def test_a_lost_sentence_counts_under_its_reason_only(
    reason: str, registry: CollectorRegistry, model: ModelMetrics
) -> None:
    getattr(model, reason)()
    lost = {
        other: registry.get_sample_value("nmt_lost_sentences_total", {**MODEL, "reason": other})
        for other in ("cancelled", "expired", "failed")
    }
    assert lost == {**dict.fromkeys(lost, 0), reason: 1}


def test_gauges_are_read_when_prometheus_asks(
    registry: CollectorRegistry, model: ModelMetrics
) -> None:
    waiting = [1, 2]
    model.watch(waiting=lambda: len(waiting), rows=lambda: 7, max_rows=64)
    waiting.append(3)
    assert gauges(registry) == (3, 7, 64)


def test_the_engines_of_a_models_versions_add_up_while_both_run(
    registry: CollectorRegistry,
) -> None:
    metrics = Metrics(registry)
    assert gauges(registry) == (None, None, None)
    end_old = metrics.model("m").watch(waiting=lambda: 1, rows=lambda: 2, max_rows=8)
    end_new = metrics.model("m").watch(waiting=lambda: 10, rows=lambda: 20, max_rows=80)
    assert gauges(registry) == (11, 22, 88)
    end_old()
    end_old()
    assert gauges(registry) == (10, 20, 80)
    end_new()
    assert gauges(registry) == (0, 0, 0)


@pytest.mark.parametrize("reason", list(Refusal))
def test_a_refusal_counts_its_sentences_under_its_reason_only(
    reason: Refusal, registry: CollectorRegistry, model: ModelMetrics
) -> None:
    model.refused(5, reason)
    refused = {
        other: registry.get_sample_value(
            "nmt_refused_sentences_total", {**MODEL, "reason": other.value}
        )
        for other in Refusal
    }
    assert refused == {**dict.fromkeys(refused, 0), reason: 5}


def test_a_workers_death_and_a_first_token_are_counted(
    registry: CollectorRegistry, model: ModelMetrics
) -> None:
    assert registry.get_sample_value("nmt_worker_restarts_total", MODEL) == 0
    model.worker_restarted()
    model.first_stepped(0.25)
    assert registry.get_sample_value("nmt_worker_restarts_total", MODEL) == 1
    assert registry.get_sample_value("nmt_first_token_seconds_sum", MODEL) == 0.25


def test_reloads_are_counted_by_their_outcome_from_zero(registry: CollectorRegistry) -> None:
    metrics = Metrics(registry)
    assert {labels["outcome"] for labels in series(registry, "nmt_reloads_total")} == {
        "loaded",
        "unloaded",
        "unchanged",
        "failed",
    }
    metrics.reload("failed")
    assert registry.get_sample_value("nmt_reloads_total", {"outcome": "failed"}) == 1
    assert registry.get_sample_value("nmt_reloads_total", {"outcome": "loaded"}) == 0


def test_the_last_load_time_of_a_model_is_shown(registry: CollectorRegistry) -> None:
    metrics = Metrics(registry)
    metrics.load_seconds("m", 9)
    metrics.load_seconds("m", 3)
    assert registry.get_sample_value("nmt_model_load_seconds", MODEL) == 3


def test_what_is_served_is_described_until_it_is_forgotten(registry: CollectorRegistry) -> None:
    metrics = Metrics(registry)
    describe = partial(metrics.describe_model, "m", languages=("en", "fr"), architecture="gru")
    describe(version="1", precision="fp32", device="cpu")
    describe(version="2", precision="fp16", device="cuda")
    assert [labels["device"] for labels in series(registry, "nmt_model_info")] == ["cpu", "cuda"]
    metrics.forget_model("m", "1")
    assert series(registry, "nmt_model_info") == [
        {
            "model": "m",
            "version": "2",
            "source_language": "en",
            "target_language": "fr",
            "architecture": "gru",
            "precision": "fp16",
            "device": "cuda",
        }
    ]


def test_a_bundle_that_changed_and_kept_its_version_stays_described(
    registry: CollectorRegistry,
) -> None:
    metrics = Metrics(registry)
    for _ in range(2):
        metrics.describe_model("m", "1", ("en", "fr"), "gru", "int8", "cpu")
    metrics.forget_model("m", "1")
    assert len(series(registry, "nmt_model_info")) == 1
    metrics.forget_model("m", "1")
    metrics.forget_model("m", "1")
    assert series(registry, "nmt_model_info") == []


def test_the_memory_and_the_time_of_the_process_are_shown(registry: CollectorRegistry) -> None:
    Metrics(registry)
    for name in ("process_resident_memory_bytes", "process_cpu_seconds_total"):
        assert (registry.get_sample_value(name) or 0) > 0, name


def test_two_servers_in_one_process_share_nothing() -> None:
    first, second = CollectorRegistry(), CollectorRegistry()
    Metrics(second).model("m")
    Metrics(first).model("m").worker_restarted()
    assert first.get_sample_value("nmt_worker_restarts_total", MODEL) == 1
    assert second.get_sample_value("nmt_worker_restarts_total", MODEL) == 0


@pytest.mark.parametrize("bounds", [LATENCY_BUCKETS, STEP_BUCKETS])
def test_no_histogram_has_more_than_fifteen_buckets_or_ends_too_early(
    bounds: tuple[float, ...],
) -> None:
    assert len(bounds) + 1 <= 15, "the infinite one is a bucket too"
    assert list(bounds) == sorted(set(bounds))
    assert bounds[0] < 0.001
    assert bounds[-1] >= 10
