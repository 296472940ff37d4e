"""Metrics: the numbers move with what happened, and labels stay closed sets."""

from inspect import signature

import pytest
from prometheus_client import CollectorRegistry

from service.decoding import FinishReason
from service.engine import Observer
from service.metrics import LATENCY_BUCKETS, STEP_BUCKETS, Metrics, ModelMetrics

RPC = {"grpc_type": "unary", "grpc_service": "nmt.v1.TranslationService", "grpc_method": "M"}
MODEL = {"model": "m"}


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def model(registry: CollectorRegistry) -> ModelMetrics:
    return Metrics(registry).model("m")


def test_an_rpc_is_counted_when_it_starts_and_when_it_ends(registry: CollectorRegistry) -> None:
    rpc = Metrics(registry).rpc(*RPC.values())
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
    model.watch(waiting=lambda: len(waiting), rows=lambda: 7)
    waiting.append(3)
    assert registry.get_sample_value("nmt_waiting_sentences", MODEL) == 3
    assert registry.get_sample_value("nmt_rows_in_flight", MODEL) == 7


def test_two_servers_in_one_process_share_nothing() -> None:
    first, second = CollectorRegistry(), CollectorRegistry()
    Metrics(second).model("m")
    Metrics(first).model("m").refused(5)
    assert first.get_sample_value("nmt_refused_sentences_total", MODEL) == 5
    assert second.get_sample_value("nmt_refused_sentences_total", MODEL) == 0


def test_no_histogram_has_more_than_fifteen_buckets() -> None:
    assert max(len(LATENCY_BUCKETS), len(STEP_BUCKETS)) <= 15
