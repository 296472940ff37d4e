"""Workers that die: noticed at once, replaced, and nobody hangs."""

import queue
import threading
from collections.abc import Iterator

import pytest

from service.batching import Batcher
from service.engine import Engine
from service.engine.dispatcher import Dispatcher
from service.engine.supervisor import MAX_PAUSE_SECONDS, pause_seconds
from service.errors import Unavailable, WorkerFailed
from tests.gate import GREEDY, LIMITS, PATIENCE, Gate, GatedModel, Recorder, Stage

DIED = "^a worker died; the server's log has the details"


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    yield stage
    stage.gate.open()
    stage.engine.close()


def await_restart(recorder: Recorder) -> None:
    assert recorder.restarts.acquire(timeout=PATIENCE)


def answered(engine: Engine) -> bool:
    return bool(engine.submit_all([[5, 6]], GREEDY)[0].result(PATIENCE))


@pytest.mark.parametrize("fault", [SystemExit("injected"), MemoryError(), KeyboardInterrupt()])
def test_whatever_ends_a_step_its_sentences_are_told_and_the_next_are_answered(
    stage: Stage, fault: BaseException
) -> None:
    victims = stage.in_flight([5], [6])
    stage.models[0].fails, stage.models[0].fault = True, fault
    stage.gate.open()
    for victim in victims:
        with pytest.raises(WorkerFailed):
            victim.result(PATIENCE)
    assert answered(stage.engine)
    assert stage.engine.is_healthy
    assert len(stage.models) == 2, "rows of the failed step must not be used again"


def test_a_fault_outside_a_step_ends_the_worker_and_not_those_who_wait(stage: Stage) -> None:
    victims = stage.in_flight([5], [6], [7], [8])
    survivor = stage.submit([9])
    stage.gate.let_one_step()
    stage.clock.faults = [RuntimeError("injected")]  # as the second step is reported
    stage.gate.open()
    for victim in victims:
        with pytest.raises(WorkerFailed, match=DIED):
            victim.result(PATIENCE)
    assert survivor.result(PATIENCE)
    await_restart(stage.recorder)
    assert stage.recorder.ends["failed"] == 4


def test_a_death_fails_all_in_flight_though_their_request_gives_them_up_at_the_first(
    stage: Stage,
) -> None:
    first, *others, left = stage.in_flight([5], [6], [7], [8])
    left.cancel()

    def give_up(future: object) -> None:
        for other in others:
            other.cancel()

    first.add_done_callback(give_up)
    stage.models[0].fails, stage.models[0].fault = True, SystemExit("injected")
    stage.gate.open()
    await_restart(stage.recorder)
    assert all(other.cancelled() for other in others)
    assert stage.recorder.ends == {"failed": 3, "cancelled": 1}


class Factory:
    """Makes models when the test says so, or can't make them."""

    def __init__(self) -> None:
        self.gate, self.recorder = Gate(), Recorder()
        self._attempts = threading.Semaphore(0)
        self._outcomes: queue.SimpleQueue[BaseException | GatedModel] = queue.SimpleQueue()

    def engine(self, workers: int = 1) -> Engine:
        return Engine(self._make, LIMITS, workers=workers, observer=self.recorder)

    def _make(self) -> GatedModel:
        self._attempts.release()
        outcome = self._outcomes.get(timeout=PATIENCE)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def succeed(self) -> GatedModel:
        """Lets the next attempt, or the one that waits, make a model."""
        self._outcomes.put(model := GatedModel(self.gate))
        return model

    def fail(self) -> None:
        self._outcomes.put(RuntimeError("injected"))

    def await_attempt(self) -> None:
        assert self._attempts.acquire(timeout=PATIENCE)


def test_health_tells_the_truth_while_no_model_can_be_made_and_after() -> None:
    factory = Factory()
    engine = factory.engine()
    model = factory.succeed()
    factory.await_attempt()
    [victim] = engine.submit_all([[5]], GREEDY)
    factory.gate.await_worker()
    [waiting] = engine.submit_all([[6]], GREEDY)
    model.fails = True
    factory.gate.open()
    with pytest.raises(WorkerFailed, match="^decoding failed"):
        victim.result(PATIENCE)
    factory.await_attempt()
    factory.fail()  # the failed step's rows can't be replaced: the worker is dead
    factory.await_attempt()
    assert not engine.is_healthy
    assert not waiting.done(), "there is still hope"
    factory.fail()
    with pytest.raises(WorkerFailed, match="^no worker can run the model"):
        waiting.result(PATIENCE)
    with pytest.raises(Unavailable, match="can't run at present"):
        engine.submit_all([[7]], GREEDY)
    factory.await_attempt()
    assert not engine.is_healthy
    assert engine.num_accepted == 0
    factory.succeed()
    await_restart(factory.recorder)
    assert engine.is_healthy
    assert answered(engine)
    assert factory.recorder.ends == {"failed": 2, "finished": 1}
    engine.close()
    assert not engine.is_healthy


def test_a_worker_that_cannot_be_replaced_leaves_everything_to_its_fellow() -> None:
    factory = Factory()
    engine = factory.engine(workers=2)
    models = [factory.succeed(), factory.succeed()]
    futures = []
    for source in ([5], [6]):  # one after the other: the worker that waits can't take the second
        factory.await_attempt()
        futures += engine.submit_all([source], GREEDY)
        factory.gate.await_worker()
    models[0].fails = True
    factory.gate.open()
    for _ in range(2):
        factory.await_attempt()
        factory.fail()
    factory.await_attempt()
    assert engine.is_healthy
    assert sorted(type(future.exception(PATIENCE)) is WorkerFailed for future in futures) == [
        False,
        True,
    ]
    assert answered(engine)
    factory.fail()
    engine.close()


def test_a_stop_ends_the_pause_before_the_next_attempt() -> None:
    dispatcher = Dispatcher(Batcher(), [], lambda: 0.0)
    pausing = threading.Thread(target=dispatcher.pause, args=(3600.0,))
    pausing.start()
    dispatcher.stop()
    pausing.join(PATIENCE)
    assert not pausing.is_alive()


def test_pauses_grow_and_are_bounded() -> None:
    pauses = [pause_seconds(failures) for failures in range(1, 2000)]
    assert pauses[0] == 0.0 < pauses[1]
    assert pauses == sorted(pauses)
    assert pauses[-1] == MAX_PAUSE_SECONDS
