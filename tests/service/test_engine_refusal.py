"""What the engine does not accept, and what it tells of that."""

from collections.abc import Iterator
from concurrent.futures import wait

import pytest

from service.batching import QueueLimits, Request
from service.errors import DeadlineExceeded, QueueFull, Refusal
from tests.gate import GREEDY, PATIENCE, Stage


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    yield stage
    stage.gate.open()
    stage.engine.close()


def test_a_deadline_that_has_passed_is_refused_before_it_waits(stage: Stage) -> None:
    stage.clock.now = 2.0
    with pytest.raises(DeadlineExceeded):
        stage.submit([5], deadline=2.0)
    assert stage.engine.num_accepted == 0


def test_a_deadline_that_cannot_be_met_is_refused_once_the_speed_is_known(stage: Stage) -> None:
    accepted = stage.in_flight(*[[5, 6]] * 40)
    accepted.append(stage.submit([5], deadline=0.01))  # nothing is known of the speed yet
    for _ in range(20):
        stage.gate.let_one_step()
        stage.clock.now += 0.05
    with pytest.raises(QueueFull) as refusal:
        stage.submit([5], deadline=stage.clock.now + 0.01)
    assert stage.recorder.refusals == [refusal.value.reason] == [Refusal.DEADLINE]
    accepted += stage.engine.submit_more([[5]], GREEDY, stage.clock.now + 0.01)
    accepted.append(stage.submit([5], deadline=stage.clock.now + 60.0))
    stage.gate.open()
    wait(accepted, PATIENCE)
    assert stage.recorder.ends == {"refused": 1, "expired": 1, "finished": 42}


def test_a_full_queue_refuses_at_once() -> None:
    stage = Stage(queue=QueueLimits(max_sentences=2))
    accepted = stage.in_flight([5], [6]) + stage.engine.submit_all([[7], [8]], GREEDY)
    with pytest.raises(QueueFull):
        stage.submit([9])
    with pytest.raises(QueueFull):
        stage.engine.submit_more([[9]], GREEDY)
    assert stage.recorder.ends == {"refused": 1}, "who was accepted before isn't refused"
    assert stage.recorder.refusals == [Refusal.QUEUE_SENTENCES]
    stage.gate.open()
    wait(accepted, PATIENCE)
    stage.engine.close()
    assert stage.recorder.ends == {"refused": 1, "finished": 4}


def test_room_is_kept_while_a_request_is_read_and_given_up_if_that_fails() -> None:
    stage = Stage(queue=QueueLimits(max_sentences=2))
    accepted, request = stage.in_flight([5]), Request(2, 2)
    with pytest.raises(RuntimeError, match="unreadable"), stage.engine.room_for(request):
        with pytest.raises(QueueFull):
            stage.submit([6])
        raise RuntimeError("unreadable")
    with stage.engine.room_for(request):
        accepted += stage.engine.submit_all([[6], [7]], GREEDY, group=request)
    stage.gate.open()
    wait(accepted, PATIENCE)
    stage.engine.close()
    assert stage.recorder.ends == {"refused": 1, "finished": 3}


def test_who_has_no_room_or_no_time_does_not_get_to_read(stage: Stage) -> None:
    accepted = stage.in_flight(*[[5, 6]] * 40)
    for _ in range(20):
        stage.gate.let_one_step()
        stage.clock.now += 0.05
    late = Request(3, 30, deadline=stage.clock.now + 0.01)
    with pytest.raises(QueueFull), stage.engine.room_for(late):
        raise AssertionError("it was read")
    assert stage.recorder.refusals == [Refusal.DEADLINE]
    with stage.engine.room_for(Request(3, 30, deadline=stage.clock.now + 60.0)):
        pass
    stage.gate.open()
    wait(accepted, PATIENCE)
