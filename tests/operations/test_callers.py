"""Callers who leave, who have little time, and who have little to ask beside one with much."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest

from tests.operations.steered_server import (
    MAX_ROWS,
    NUM_STEPS,
    STEERED,
    TEXT,
    SteeredServer,
    retry_seconds,
    steered_server,
)
from tests.running_server import eventually

OK, EXHAUSTED = grpc.StatusCode.OK, grpc.StatusCode.RESOURCE_EXHAUSTED
LATE = grpc.StatusCode.DEADLINE_EXCEEDED
TRANSLATE = {"grpc_service": "nmt.v1.TranslationService", "grpc_method": "Translate"}


@pytest.fixture
def fresh(models: Path, tmp_path: Path) -> Iterator[SteeredServer]:
    """A server that has no idea yet of how fast it is."""
    with steered_server(models, log_file=tmp_path / "log") as server:
        yield server
        server.set_free()


def test_a_client_that_vanishes_frees_its_rows_within_two_steps(fresh: SteeredServer) -> None:
    def num_cancelled() -> float:
        return fresh.server.sample("grpc_server_handled_total", grpc_code="Canceled", **TRANSLATE)

    fresh.order("hold")
    texts = [TEXT] * MAX_ROWS
    command = [sys.executable, "-m", "service", "translate", f"--server={fresh.server.address}"]
    with subprocess.Popen([*command, f"--model={STEERED}", *texts]) as client:
        try:
            eventually(lambda: fresh.num_rows == MAX_ROWS)
            fresh.let_steps(1)
            assert fresh.num_rows == MAX_ROWS
        finally:
            client.kill()
    eventually(lambda: num_cancelled() == 1)
    num_steps = fresh.num_steps
    waiting = fresh.call(MAX_ROWS)
    fresh.order("step 2")
    eventually(lambda: fresh.lost("cancelled") == MAX_ROWS)
    eventually(lambda: fresh.num_steps == num_steps + 2)
    assert fresh.num_rows == MAX_ROWS and fresh.num_waiting == 0, "others have the rows"
    fresh.order("go")
    assert waiting.code() is OK
    eventually(fresh.is_idle)
    assert fresh.num_finished == MAX_ROWS


def test_a_deadline_is_kept_in_the_queue_and_at_every_step(fresh: SteeredServer) -> None:
    patient = fresh.hold(MAX_ROWS // 2)
    in_flight = fresh.call(MAX_ROWS // 2, timeout=3.0)
    eventually(lambda: fresh.num_waiting == MAX_ROWS // 2)
    fresh.let_steps(1)
    eventually(lambda: fresh.num_rows == MAX_ROWS)
    queued = fresh.queue(1, timeout=0.5)
    num_tokens = fresh.sample("nmt_source_tokens_total")
    assert queued.code() is LATE
    assert in_flight.code() is LATE
    fresh.let_steps(1)
    assert patient.code() is OK
    eventually(fresh.is_idle)
    assert fresh.lost("cancelled", "expired") == MAX_ROWS // 2 + 1
    assert fresh.num_steps == NUM_STEPS
    assert fresh.sample("nmt_source_tokens_total") == num_tokens, "who came too late isn't encoded"


def test_a_deadline_that_can_not_be_met_is_refused_instead_of_started(fresh: SteeredServer) -> None:
    def refused_for_time() -> float:
        return fresh.sample("nmt_refused_sentences_total", reason="deadline")

    patient = [fresh.hold(), *(fresh.queue(64) for _ in range(4))]
    while (hasty := fresh.call(64, timeout=0.2)).code() is LATE:
        fresh.let_steps(1)  # so slow that nobody can hope to be answered in time
    assert hasty.code() is EXHAUSTED
    assert retry_seconds(hasty) > 0
    assert refused_for_time() == 64
    fresh.order("go")
    assert {call.code() for call in patient} == {OK}


def test_a_caller_of_one_sentence_does_not_wait_for_another_ones_ten_thousand(
    steered: SteeredServer,
) -> None:
    steered.hold()
    large = steered.call(10_000)
    eventually(lambda: steered.num_waiting > MAX_ROWS)
    steered.let_steps(NUM_STEPS)  # the first of them are in a batch now
    small = steered.queue(1)
    steered.let_steps(NUM_STEPS)  # they make way
    steered.let_steps(NUM_STEPS)
    assert small.code() is OK
    assert not large.done()
    large.cancel()
