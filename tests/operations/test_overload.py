"""More calls than a server can answer: it says so at once, and answers what it has accepted."""

import re
from itertools import count
from pathlib import Path
from threading import Event, Thread

import grpc

from service.pb import translation_pb2 as pb
from service.pb.translation_pb2_grpc import TranslationServiceStub
from tests.operations.steered_server import (
    MAX_QUEUE,
    OTHER,
    SERVING,
    STEERED,
    TEXT,
    SteeredServer,
    retry_seconds,
    steered_server,
)
from tests.running_server import eventually

PER_CALL = 64
# Together they ask for twice what has room.
NUM_CALLERS = 2 * MAX_QUEUE // PER_CALL
OK, EXHAUSTED = grpc.StatusCode.OK, grpc.StatusCode.RESOURCE_EXHAUSTED
UNREADABLE = pb.TranslateRequest(
    contents=[f"{TEXT[:-1]} " * 80],
    model=STEERED,
    text_options=pb.TextOptions(long_sentences=pb.LONG_SENTENCES_REFUSE),
)


def test_a_full_queue_refuses_while_nothing_moves_and_all_else_is_answered(
    steered: SteeredServer,
) -> None:
    accepted = [steered.hold()]
    accepted += [steered.queue(PER_CALL) for _ in range(MAX_QUEUE // PER_CALL)]
    num_steps, num_refused = steered.num_steps, steered.num_refused
    for num_sentences in (1, PER_CALL):
        refused = steered.call(num_sentences)
        assert refused.code() is EXHAUSTED
        assert retry_seconds(refused) > 0
    assert steered.num_refused == num_refused + 1 + PER_CALL

    assert steered.call(model=OTHER).code() is OK
    listed = TranslationServiceStub(steered.channel).ListModels(
        pb.ListModelsRequest(), metadata=steered.metadata
    )
    assert len(listed.models) == 2
    assert [steered.health(name) for name in ("", STEERED, OTHER)] == [SERVING] * 3
    assert steered.num_steps == num_steps

    steered.order("go")
    assert {call.code() for call in accepted} == {OK}
    assert steered.call(PER_CALL).code() is OK


def test_what_there_is_no_room_for_is_not_even_read(steered: SteeredServer) -> None:
    accepted = [steered.hold(), *(steered.queue(PER_CALL) for _ in range(MAX_QUEUE // PER_CALL))]
    assert steered.send(UNREADABLE).code() is EXHAUSTED
    steered.order("go")
    assert {call.code() for call in accepted} == {OK}
    assert steered.send(UNREADABLE).code() is grpc.StatusCode.INVALID_ARGUMENT


def test_what_there_is_no_time_for_is_not_even_read(steered: SteeredServer) -> None:
    accepted = [
        steered.hold(),
        *(steered.queue(PER_CALL) for _ in range(MAX_QUEUE // PER_CALL // 2)),
    ]
    num_refused = steered.sample("nmt_refused_sentences_total", reason="deadline")

    def is_refused_once_the_speed_is_known() -> bool:
        steered.let_steps(1)
        return steered.send(UNREADABLE, timeout=0.25).code() is EXHAUSTED

    eventually(is_refused_once_the_speed_is_known)
    assert steered.sample("nmt_refused_sentences_total", reason="deadline") == num_refused + 1
    steered.order("go")
    assert {call.code() for call in accepted} == {OK}


def test_refusals_by_the_hundred_are_a_line_a_second_with_the_number_of_the_others(
    models: Path, tmp_path: Path
) -> None:
    with steered_server(models, log_file=tmp_path / "log") as steered:
        accepted = [
            steered.hold(),
            *(steered.queue(PER_CALL) for _ in range(MAX_QUEUE // PER_CALL)),
        ]
        calls = count(1)

        def refused_lines() -> list[str]:
            assert steered.call().code() is EXHAUSTED
            next(calls)
            lines = re.findall(".*RESOURCE_EXHAUSTED.*", steered.server.log())
            return lines if len(lines) > 1 else []

        first, second = eventually(refused_lines)
        steered.order("go")
        assert {call.code() for call in accepted} == {OK}
    assert "left_out" not in first
    left_out = int(second.rpartition("left_out=")[2])
    # The caller has its answer a moment before the line is there.
    assert next(calls) - 1 - left_out in (2, 3)


def test_under_overload_every_call_is_answered_or_refused_and_counted(
    steered: SteeredServer,
) -> None:
    num_refused, num_finished = steered.num_refused, steered.num_finished
    calls, enough = list[grpc.StatusCode](), Event()

    def call_until_enough() -> None:
        while not enough.is_set():
            calls.append(steered.call(PER_CALL).code())

    threads = [Thread(target=call_until_enough) for _ in range(NUM_CALLERS)]
    for thread in threads:
        thread.start()
    try:
        eventually(lambda: min(calls.count(OK), calls.count(EXHAUSTED)) > NUM_CALLERS)
        assert steered.health() == SERVING
    finally:
        enough.set()
        for thread in threads:
            thread.join()
    assert set(calls) == {OK, EXHAUSTED}
    eventually(steered.is_idle)
    assert steered.num_finished == num_finished + PER_CALL * calls.count(OK)
    assert steered.num_refused == num_refused + PER_CALL * calls.count(EXHAUSTED)


def test_thousands_who_call_at_once_are_all_answered(steered: SteeredServer) -> None:
    listing = TranslationServiceStub(steered.channel).ListModels
    calls = [listing.future(pb.ListModelsRequest(), metadata=steered.metadata) for _ in range(4000)]
    assert {call.code() for call in calls} == {OK}
