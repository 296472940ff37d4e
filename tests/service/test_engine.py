"""The engine: who joins, who leaves, and that every sentence is answered, whatever happens."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, wait
from functools import partial

import pytest

from service.bundle import Bundle
from service.decoding import DecodingOptions, Hypothesis, StepModel, decode
from service.engine import Engine, load_engine
from service.engine.warming import warm_up
from service.errors import (
    DeadlineExceeded,
    InvalidArgument,
    Unavailable,
    WorkerFailed,
)
from service.session import Graphs, OnnxModel
from tests.gate import GREEDY, LIMITS, PATIENCE, POISON, Gate, GatedModel, Stage
from tests.tiny_bundle import random_sources
from tests.toys import ToyModel

BEAM = DecodingOptions(beam_size=3, num_hypotheses=2, max_length=40)


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
        engine.wait_until_ready()
        futures = engine.submit_all(sources, options)
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
        futures = [
            engine.submit_all([source], options)[0]
            for source, options in zip(sources, mixed, strict=True)
        ]
        for source, options, future in zip(sources, mixed, futures, strict=True):
            assert ids(future) == decode(model, [source], options)[0][0].ids
    finally:
        engine.close()


def test_a_sentence_joins_those_in_flight(stage: Stage) -> None:
    (early,) = stage.in_flight([5, 6, 7])
    stage.gate.let_one_step()
    late = stage.submit([8, 9])
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


def test_a_caller_that_leaves_frees_all_its_rows_within_two_steps(stage: Stage) -> None:
    (stays,) = stage.in_flight([5])
    request = stage.engine.submit_all([[6], [7], [8], [9], [10]], GREEDY)
    stage.gate.let_one_step()
    assert (stage.engine.num_rows, stage.engine.num_waiting) == (4, 2)
    for future in request:
        future.cancel()
    stage.gate.let_one_step()
    stage.gate.let_one_step()
    assert (stage.engine.num_rows, stage.engine.num_waiting) == (1, 0)
    assert stage.engine.num_accepted == 1
    assert stage.recorder.ends == {"cancelled": 5}
    stage.gate.open()
    assert ids(stays) == expected([5])


def test_a_late_request_of_one_sentence_is_answered_before_a_long_one_is(stage: Stage) -> None:
    many = stage.in_flight(*[[5]] * 40)
    one = stage.submit([6])
    order = list[Future[list[Hypothesis]]]()
    for future in (*many, one):
        future.add_done_callback(order.append)
    stage.gate.open()
    wait([*many, one], PATIENCE)
    assert order.index(one) < 8, "four were in flight, and as many may join with it"


def test_a_sentence_cancelled_while_it_waits_is_never_encoded(stage: Stage) -> None:
    running = stage.in_flight([5], [6], [7], [8])
    waiting = stage.submit([POISON])
    waiting.cancel()
    stage.gate.open()
    wait([*running, stage.submit([9])], PATIENCE)
    stage.engine.close()
    assert stage.recorder.ends == {"finished": 5, "cancelled": 1}


def test_a_deadline_in_flight_frees_the_rows(stage: Stage) -> None:
    (patient,) = stage.in_flight([5])
    hurried = stage.submit([6], deadline=1.0)
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
    hurried = stage.submit([9], deadline=1.0)
    stage.clock.now = 1.0
    stage.gate.let_one_step()
    with pytest.raises(DeadlineExceeded):
        hurried.result(PATIENCE)
    assert stage.recorder.ends == {"expired": 1}


@pytest.mark.parametrize(
    ("cancelled_at", "end"), [(0.5, "cancelled"), (1.0, "expired"), (0.98, "expired")]
)
def test_what_is_cancelled_at_its_deadline_has_expired_whenever_that_is_noticed(
    cancelled_at: float, end: str, stage: Stage
) -> None:
    """gRPC cancels a handler at the deadline, by a clock that may be a little ahead."""
    running, waiting = stage.in_flight([5]), stage.submit([6], deadline=1.0)
    hurried = stage.submit([7], deadline=1.0)
    stage.gate.let_one_step()
    stage.clock.now = cancelled_at
    for future in (waiting, hurried):
        future.cancel()
    stage.clock.now = 2.0
    stage.gate.open()
    wait(running, PATIENCE)
    stage.engine.close()
    assert stage.recorder.ends == {"finished": 1, end: 2}


def test_a_first_step_is_told_once_for_each_sentence(stage: Stage) -> None:
    running = stage.in_flight([5], [6])
    stage.clock.now = 2.0
    stage.gate.let_one_step()
    running.append(stage.submit([7]))
    stage.gate.let_one_step()
    stage.clock.now = 5.0
    stage.gate.open()
    wait(running, PATIENCE)
    assert stage.recorder.first_steps == [2.0, 2.0, 3.0]


def test_a_fault_in_a_step_fails_those_in_flight_and_nobody_else(stage: Stage) -> None:
    victims = stage.in_flight([5], [6], [7], [8])
    survivor = stage.submit([9, 10])
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


def test_every_worker_has_been_through_its_own_model_before_the_engine_is_ready() -> None:
    made, warmed = list[StepModel](), dict[str, StepModel]()

    def make_model() -> ToyModel:
        made.append(model := ToyModel(20))
        return model

    def warm_up(model: StepModel) -> None:
        warmed[str(threading.get_ident())] = model

    engine = Engine(make_model, LIMITS, workers=3, warm_up=warm_up)
    engine.wait_until_ready()
    assert len(warmed) == 3
    assert {*map(id, warmed.values())} == {*map(id, made)}
    wait(engine.submit_all([[5]] * 12, GREEDY), PATIENCE)
    assert len(made) == 3, "sentences meet the models that are warm"
    engine.close()


def test_an_engine_is_unhealthy_until_a_worker_is_ready() -> None:
    may_end = threading.Event()

    def warm_up(model: StepModel) -> None:
        assert may_end.wait(PATIENCE)

    engine = Engine(partial(ToyModel, 20), LIMITS, warm_up=warm_up)
    early = engine.submit_all([[5]], GREEDY)
    assert not engine.is_healthy
    may_end.set()
    engine.wait_until_ready()
    assert engine.is_healthy
    assert ids(early[0])
    engine.close()


@pytest.mark.parametrize("stage_of_it", ["making", "warming up"])
def test_a_worker_that_cannot_start_says_why_and_nobody_waits_for_it(stage_of_it: str) -> None:
    def fail(*_: object) -> ToyModel:
        raise MemoryError("injected")

    make_model = fail if stage_of_it == "making" else partial(ToyModel, 20)
    engine = Engine(make_model, LIMITS, warm_up=fail)  # type: ignore[arg-type]
    with pytest.raises(MemoryError, match="injected"):
        engine.wait_until_ready()
    assert not engine.is_healthy
    with pytest.raises(Unavailable, match="can't run at present"):
        engine.submit_all([[5]], GREEDY)
    engine.close()


def test_warming_up_takes_the_largest_shapes_first() -> None:
    joined = list[tuple[int, int]]()

    class Watched(ToyModel):
        def append(
            self,
            sources: Sequence[Sequence[int]],
            beam_size: int,
            shortlist: Sequence[bool] | None = None,
        ) -> None:
            joined.append((len(sources), max(map(len, sources))))
            super().append(sources, beam_size, shortlist)

    warm_up(Watched(20), LIMITS, max_rows=64)
    assert joined == [(64, 16), (1, LIMITS.max_source_tokens), (1, 16)]


def test_closing_answers_everybody_and_accepts_nobody(stage: Stage) -> None:
    running, waiting = stage.in_flight(*([5 + n] for n in range(4))), stage.submit([20])
    left = stage.submit([21])
    left.cancel()
    closing = threading.Thread(target=stage.engine.close)
    closing.start()
    wait([waiting], PATIENCE)  # the others wait for the end of a step
    stage.gate.open()
    closing.join(PATIENCE)
    for future in [*running, waiting]:
        with pytest.raises(Unavailable):
            future.result(PATIENCE)
    with pytest.raises(Unavailable):
        stage.submit([5])
    assert stage.recorder.ends == {"failed": 5, "cancelled": 1}


def test_closing_does_not_wait_for_a_step_that_hangs(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    stage.in_flight([5])
    stage.engine.close(timeout=0)
    assert "workers still in a step after 0 s: 1" in caplog.text


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
        stage.submit(source, options)
    assert stage.engine.num_waiting == 0


def test_many_callers_at_once_each_get_their_own_answer(bundle: Bundle) -> None:
    sources = random_sources(12)
    engine = load_engine(bundle, precision="fp32", workers=2, max_rows=8)
    model = OnnxModel(Graphs.load(bundle, "fp32"), 8)
    wanted = [each[0].ids for each in decode(model, sources, GREEDY, max_rows=8)]
    answers: dict[int, list[tuple[int, ...]]] = {}

    def call(caller: int) -> None:
        futures = [engine.submit_all([source], GREEDY)[0] for source in sources]
        answers[caller] = [ids(future) for future in futures]

    callers = [threading.Thread(target=call, args=(caller,)) for caller in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(PATIENCE)
    assert list(answers.values()) == [wanted] * 4
    engine.close()
