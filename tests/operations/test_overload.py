"""More calls than a server can answer: it says so at once, and answers what it has accepted."""

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
)
from tests.running_server import eventually

PER_CALL = 64
# Together they ask for twice what has room.
NUM_CALLERS = 2 * MAX_QUEUE // PER_CALL
OK, EXHAUSTED = grpc.StatusCode.OK, grpc.StatusCode.RESOURCE_EXHAUSTED


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
    unreadable = pb.TranslateRequest(
        contents=[f"{TEXT[:-1]} " * 80],
        model=STEERED,
        text_options=pb.TextOptions(long_sentences=pb.LONG_SENTENCES_REFUSE),
    )
    accepted = [steered.hold(), *(steered.queue(PER_CALL) for _ in range(MAX_QUEUE // PER_CALL))]
    assert steered.send(unreadable).code() is EXHAUSTED
    steered.order("go")
    assert {call.code() for call in accepted} == {OK}
    assert steered.send(unreadable).code() is grpc.StatusCode.INVALID_ARGUMENT


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
