import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from pathlib import Path

import pytest

from service.batching import QueueLimits
from service.bundle import Bundle, Limits
from service.decoding import DecodingOptions, FinishReason, Hypothesis, decode
from service.engine import Engine, SilentObserver, load_engine, usable_cores
from service.errors import (
    DeadlineExceeded,
    InvalidArgument,
    QueueFull,
    Unavailable,
    WorkerFailed,
)
from service.session import Graphs, OnnxModel
from tests.gate import PATIENCE, POISON, Gate, GatedModel
from tests.tiny_bundle import random_sources

GREEDY = DecodingOptions(max_length=40)
BEAM = DecodingOptions(beam_size=3, num_hypotheses=2, max_length=40)
LIMITS = Limits(max_source_tokens=32, max_target_tokens=64)


class Recorder(SilentObserver):
    """Counts how sentences end."""

    def __init__(self) -> None:
        self.ends: Counter[str] = Counter()
        self.rows: list[int] = []
        self._lock = threading.Lock()

    def _count(self, end: str) -> None:
        with self._lock:
            self.ends[end] += 1

    def stepped(self, rows: int, seconds: float) -> None:
        self.rows.append(rows)

    def finished(self, reason: FinishReason, tokens: int, seconds: float) -> None:
        self._count("finished")

    def cancelled(self) -> None:
        self._count("cancelled")

    def expired(self) -> None:
        self._count("expired")

    def failed(self) -> None:
        self._count("failed")

    def refused(self, sentences: int) -> None:
        self._count("refused")


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Stage:
    """An engine with one worker behind a gate, on a clock that stands still."""

    def __init__(self, *, queue: QueueLimits | None = None) -> None:
        self.gate, self.clock, self.recorder = Gate(), Clock(), Recorder()
        self.models: list[GatedModel] = []
        self.engine = Engine(
            self._make_model,
            LIMITS,
            max_rows=4,
            queue=queue,
            observer=self.recorder,
            clock=self.clock,
        )

    def _make_model(self) -> GatedModel:
        self.models.append(GatedModel(self.gate))
        return self.models[-1]

    def in_flight(self, *sources: Sequence[int]) -> list[Future[list[Hypothesis]]]:
        """Submits to the idle engine and returns once the first step is about to run."""
        futures = self.engine.submit_all(sources, GREEDY)
        self.gate.await_worker()
        return futures


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    yield stage
    stage.gate.open()
    stage.engine.close()


def expected(source: Sequence[int], options: DecodingOptions = GREEDY) -> tuple[int, ...]:
    gate = Gate()
    gate.open()
    return decode(GatedModel(gate), [source], options)[0][0].ids


def ids(future: Future[list[Hypothesis]]) -> tuple[int, ...]:
    return future.result(PATIENCE)[0].ids


@pytest.mark.parametrize("options", [GREEDY, BEAM], ids=["greedy", "beam"])
@pytest.mark.parametrize("workers", [1, 2])
def test_the_engine_gives_what_decoding_alone_gives(
    bundle: Bundle, options: DecodingOptions, workers: int
) -> None:
    sources = random_sources(24)
    model = OnnxModel(Graphs.load(bundle, "fp32"), 12)
    engine = load_engine(bundle, precision="fp32", workers=workers, max_rows=12)
    try:
        engine.warm_up()
        futures = [engine.submit(source, options) for source in sources]
        for source, future in zip(sources, futures, strict=True):
            alone = decode(model, [source], options)[0]
            together = future.result(PATIENCE)
            assert [each.ids for each in together] == [each.ids for each in alone]
            assert together[0].score == pytest.approx(alone[0].score, abs=1e-4)
    finally:
        engine.close()


def test_widths_and_options_of_neighbours_may_differ(bundle: Bundle) -> None:
    sources = random_sources(24)
    mixed = [
        BEAM,
        GREEDY,
        DecodingOptions(max_length=5),
        DecodingOptions(beam_size=2, max_length=9),
    ] * 6
    model = OnnxModel(Graphs.load(bundle, "fp32"), 12)
    engine = load_engine(bundle, precision="fp32", workers=2, max_rows=12)
    try:
        futures = [engine.submit(*each) for each in zip(sources, mixed, strict=True)]
        for source, options, future in zip(sources, mixed, futures, strict=True):
            assert ids(future) == decode(model, [source], options)[0][0].ids
    finally:
        engine.close()


def test_a_sentence_joins_those_in_flight(stage: Stage) -> None:
    (early,) = stage.in_flight([5, 6, 7])
    stage.gate.let_one_step()
    late = stage.engine.submit([8, 9], GREEDY)
    stage.gate.let_one_step()
    stage.gate.let_one_step()
    assert stage.recorder.rows[:3] == [1, 1, 2]
    stage.gate.open()
    assert ids(early) == expected([5, 6, 7])
    assert ids(late) == expected([8, 9])


def test_a_cancelled_sentence_frees_its_rows_before_the_next_step(stage: Stage) -> None:
    stays, leaves, other = stage.in_flight([5], [6], [7])
    leaves.cancel()
    stage.gate.let_one_step()
    stage.gate.let_one_step()
    assert len(stage.models[0].states) == 2
    assert stage.recorder.rows == [3, 2]
    stage.gate.open()
    assert (ids(stays), ids(other)) == (expected([5]), expected([7]))
    assert stage.recorder.ends["cancelled"] == 1


def test_a_sentence_cancelled_while_it_waits_is_never_encoded(stage: Stage) -> None:
    running = stage.in_flight([5], [6], [7], [8])
    waiting = stage.engine.submit([POISON], GREEDY)
    waiting.cancel()
    stage.gate.open()
    wait(running, PATIENCE)
    assert stage.engine.drain(PATIENCE)
    assert stage.recorder.ends == {"finished": 4, "cancelled": 1}


def test_a_deadline_in_flight_frees_the_rows(stage: Stage) -> None:
    (patient,) = stage.in_flight([5])
    hurried = stage.engine.submit([6], GREEDY, deadline=1.0)
    stage.gate.let_one_step()
    stage.gate.let_one_step()
    stage.clock.now = 1.0
    stage.gate.let_one_step()
    with pytest.raises(DeadlineExceeded):
        hurried.result(PATIENCE)
    stage.gate.open()
    assert ids(patient) == expected([5])
    assert stage.recorder.rows[:3] == [1, 2, 2]


def test_a_deadline_in_the_queue_is_answered_while_the_batch_is_full(stage: Stage) -> None:
    stage.in_flight([5], [6], [7], [8])
    hurried = stage.engine.submit([9], GREEDY, deadline=1.0)
    stage.clock.now = 1.0
    stage.gate.let_one_step()
    with pytest.raises(DeadlineExceeded):
        hurried.result(PATIENCE)
    assert stage.recorder.ends == {"expired": 1}


def test_a_fault_in_a_step_fails_those_in_flight_and_nobody_else(stage: Stage) -> None:
    victims = stage.in_flight([5], [6], [7], [8])
    survivor = stage.engine.submit([9, 10], GREEDY)
    stage.models[0].fails = True
    stage.gate.open()
    for victim in victims:
        with pytest.raises(WorkerFailed, match="^decoding failed; the server's log has the detail"):
            victim.result(PATIENCE)
    assert ids(survivor) == expected([9, 10])
    assert len(stage.models) == 2, "the rows of the failed step must not be used again"
    assert stage.recorder.ends == {"failed": 4, "finished": 1}


def test_a_newcomer_that_cannot_be_encoded_fails_alone(stage: Stage) -> None:
    (early,) = stage.in_flight([5])
    good, bad = stage.engine.submit_all([[6], [POISON]], GREEDY)
    stage.gate.open()
    with pytest.raises(WorkerFailed, match="^encoding failed"):
        bad.result(PATIENCE)
    assert (ids(early), ids(good)) == (expected([5]), expected([6]))


def test_a_model_that_cannot_be_made_fails_the_sentence_not_the_worker() -> None:
    gate = Gate()
    gate.open()
    models: list[Callable[[], GatedModel]] = [lambda: GatedModel(gate), lambda: 1 / 0]  # type: ignore[list-item, return-value]
    engine = Engine(lambda: models.pop()(), LIMITS)
    with pytest.raises(WorkerFailed):
        engine.submit([5], GREEDY).result(PATIENCE)
    assert ids(engine.submit([5], GREEDY)) == expected([5])
    engine.close()


def test_draining_finishes_all_that_was_accepted(stage: Stage) -> None:
    futures = stage.in_flight(*([5 + n] for n in range(8))) + [stage.engine.submit([20], BEAM)]
    stage.gate.open()
    assert stage.engine.drain(PATIENCE)
    assert all(future.done() and future.exception() is None for future in futures)
    with pytest.raises(Unavailable):
        stage.engine.submit([5], GREEDY)
    assert stage.engine.num_rows == stage.engine.num_waiting == 0


def test_a_drain_that_takes_too_long_says_so_and_answers_everybody(stage: Stage) -> None:
    futures = stage.in_flight(*([5 + n] for n in range(8)))
    drained: list[bool] = []
    closing = threading.Thread(target=lambda: drained.append(stage.engine.drain(0)))
    closing.start()
    wait(futures[4:], PATIENCE)  # they stood in the queue; the others wait for the end of a step
    stage.gate.open()
    closing.join(PATIENCE)
    assert drained == [False]
    for future in futures:
        with pytest.raises(Unavailable):
            future.result(PATIENCE)


def test_a_full_queue_refuses_at_once() -> None:
    stage = Stage(queue=QueueLimits(max_sentences=2))
    stage.in_flight([5], [6])
    stage.engine.submit_all([[7], [8]], GREEDY)
    with pytest.raises(QueueFull):
        stage.engine.submit([9], GREEDY)
    assert stage.recorder.ends == {"refused": 1}
    stage.gate.open()
    assert stage.engine.drain(PATIENCE)
    assert stage.recorder.ends == {"refused": 1, "finished": 4}


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ([5] * 33, GREEDY, "33 tokens, the limit is 32"),
        ([5], DecodingOptions(max_length=65), "max_length is 65, the model's limit is 64"),
        ([5], DecodingOptions(beam_size=5, max_length=9), "beam_size is 5, .* 4 rows"),
    ],
)
def test_what_the_model_cannot_do_is_refused_before_it_waits(
    stage: Stage, source: list[int], options: DecodingOptions, message: str
) -> None:
    with pytest.raises(InvalidArgument, match=message):
        stage.engine.submit(source, options)
    assert stage.engine.num_waiting == 0


def test_many_callers_at_once_each_get_their_own_answer(bundle: Bundle) -> None:
    sources = random_sources(12)
    engine = load_engine(bundle, precision="fp32", workers=2, max_rows=8)
    model = OnnxModel(Graphs.load(bundle, "fp32"), 8)
    wanted = [each[0].ids for each in decode(model, sources, GREEDY, max_rows=8)]
    answers: dict[int, list[tuple[int, ...]]] = {}

    def call(caller: int) -> None:
        futures = [engine.submit(source, GREEDY) for source in sources]
        answers[caller] = [ids(future) for future in futures]

    callers = [threading.Thread(target=call, args=(caller,)) for caller in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(PATIENCE)
    assert list(answers.values()) == [wanted] * 4
    assert engine.drain(PATIENCE)


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu.max": "250000 100000\n"}, 2),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
        ({}, None),
    ],
)
def test_a_containers_quota_limits_the_cores(
    tmp_path: Path, files: dict[str, str], limit: int | None
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    unlimited = usable_cores(tmp_path / "nowhere")
    assert usable_cores(tmp_path) == min(unlimited, limit or unlimited)
