"""The load generator: plans fixed in advance, latencies from when a call was due."""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from time import process_time

import pytest

from bench.load import Call, Outcome, Report, Traffic, closed_loop, open_loop, poisson_arrivals
from bench.load.__main__ import main
from bench.load.ramp import knee
from service.pb import translation_pb2 as pb
from tests.running_server import RunningServer, running_server

SENTENCES = ["Go.", "I lost.", "I'm home.", "He's calm."]


@pytest.fixture(scope="module")
def server(models: Path) -> Iterator[RunningServer]:
    with running_server(models, "--default-model=transformer") as server:
        yield server


def request(call: Call) -> pb.TranslateRequest:
    return pb.TranslateRequest.FromString(call.request)


def test_arrivals_are_the_same_for_the_same_seed_and_come_at_the_rate_asked_for() -> None:
    arrivals = poisson_arrivals(rate=200, seconds=50, seed=3)
    assert arrivals == poisson_arrivals(rate=200, seconds=50, seed=3)
    assert arrivals == sorted(arrivals) and 0 < arrivals[0] and arrivals[-1] < 50
    assert len(arrivals) == pytest.approx(10_000, rel=0.05)
    # Independent callers: gaps vary as much as they last.
    gaps = [later - earlier for earlier, later in pairwise(arrivals)]
    mean = sum(gaps) / len(gaps)
    deviation = (sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) ** 0.5
    assert deviation == pytest.approx(mean, rel=0.05)


def test_a_plan_of_too_many_calls_is_refused() -> None:
    with pytest.raises(ValueError, match="more than 1,000,000 calls"):
        poisson_arrivals(rate=1e6, seconds=60)


def test_every_call_has_as_many_sentences_as_asked_and_all_sentences_are_used() -> None:
    calls = Traffic(SENTENCES, per_call=3).calls([0.0, 0.5, 1.0, 1.5])
    assert [call.due for call in calls] == [0.0, 0.5, 1.0, 1.5]
    contents = [text for call in calls for text in request(call).contents]
    assert sorted(contents) == sorted(SENTENCES * 3)
    assert all(call.num_contents == len(request(call).contents) == 3 for call in calls)


def test_mixed_traffic_has_several_sizes_widths_and_models() -> None:
    calls = Traffic(SENTENCES, models=["a", "b"], mixed=True).calls([0.0] * 200, seed=1)
    requests = [request(call) for call in calls]
    assert {len(request.contents) for request in requests} == {1, 4, 16}
    assert {request.options.beam_size for request in requests} == {1, 4}
    assert {request.include_attention for request in requests} == {False, True}
    assert {request.model for request in requests} == {"a", "b"}


def test_a_call_that_was_sent_late_waited_from_when_it_was_due() -> None:
    outcome = Outcome(due=1.0, sent=1.5, answered=1.6, num_contents=1, code="OK")
    report = Report.of([outcome], seconds=10)
    assert report.p50 == pytest.approx(600)
    assert report.late_p99 == pytest.approx(500)


def test_goodput_is_what_was_answered_in_time_and_without_an_error() -> None:
    in_time = Outcome(due=0.0, sent=0.0, answered=0.5, num_contents=16, code="OK")
    too_late = Outcome(due=1.9, sent=1.9, answered=2.1, num_contents=4, code="OK")
    refused = Outcome(due=1.0, sent=1.0, answered=1.1, num_contents=4, code="RESOURCE_EXHAUSTED")
    report = Report.of([in_time, too_late, refused], seconds=2)
    assert (report.offered, report.goodput, report.sentences, report.failed) == (12, 8, 20, 1)
    assert report.codes == {"OK": 2, "RESOURCE_EXHAUSTED": 1}


def test_the_time_to_a_refusal_counts_from_when_a_call_was_sent() -> None:
    outcomes = [
        Outcome(due=0.0, sent=0.5, answered=0.5 + 0.001 * number, num_contents=64, code=code)
        for number in range(1, 101)
        for code in ("RESOURCE_EXHAUSTED", "UNAVAILABLE", "OK")
        if number > 50 or code != "UNAVAILABLE"
    ]
    report = Report.of(outcomes, seconds=1)
    assert report.refused_p50 == pytest.approx(50)
    assert report.refused_p99 == pytest.approx(99)


def test_the_knee_is_where_goodput_per_latency_is_largest() -> None:
    def report(goodput: float, latency: float) -> Report:
        outcome = Outcome(0.0, 0.0, latency, int(goodput), "OK")
        return Report.of([outcome], seconds=1)

    reports = [report(10, 0.01), report(50, 0.02), report(100, 0.05), report(101, 0.9)]
    assert knee(reports) is reports[1]


def test_an_open_loop_answers_every_call_of_its_plan(server: RunningServer) -> None:
    dues = poisson_arrivals(rate=50, seconds=0.5)
    outcomes = open_loop(server.address, Traffic(SENTENCES, per_call=2).calls(dues))
    assert [outcome.due for outcome in outcomes] == dues
    assert {outcome.code for outcome in outcomes} == {"OK"}
    assert all(one.due <= one.sent <= one.answered for one in outcomes)


def test_a_closed_loop_has_no_more_calls_open_than_it_has_callers(server: RunningServer) -> None:
    calls = Traffic(SENTENCES, mixed=True).calls([0.0] * 10)
    outcomes = closed_loop(server.address, calls, concurrency=3, seconds=0.3)
    assert {outcome.code for outcome in outcomes} == {"OK"}
    for outcome in outcomes:
        assert sum(one.sent <= outcome.sent < one.answered for one in outcomes) <= 3


def test_errors_are_counted_by_their_code(server: RunningServer) -> None:
    outcomes = open_loop(server.address, Traffic(SENTENCES, models=["unknown"]).calls([0.0]))
    assert [outcome.code for outcome in outcomes] == ["NOT_FOUND"]


def test_other_machines_are_left_alone_unless_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["192.0.2.1:50051", "--rate=1"])
    assert "is another machine" in capsys.readouterr().err


def test_a_load_knows_what_it_cost_the_generator(
    server: RunningServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sentences = tmp_path / "sentences"
    sentences.write_text("\n".join(SENTENCES))
    flags = [server.address, f"--sentences={sentences}", "--seconds=0.3", "--json"]
    for load in ("--rate=50", "--concurrency=2"):
        before = process_time()
        assert main([*flags, load]) == 0
        cost = json.loads(capsys.readouterr().out)["cpu_seconds"]
        assert 0 < cost < process_time() - before
