"""A worker that dies in a real server: who hears of it, what health says, and how it comes back."""

from functools import partial
from threading import Event, Thread

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest
from grpc_health.v1.health_pb2_grpc import HealthStub

from tests.operations.steered_server import (
    MAX_ROWS,
    NOT_SERVING,
    OTHER,
    SERVING,
    STEERED,
    SteeredServer,
)
from tests.running_server import eventually

OK, INTERNAL = grpc.StatusCode.OK, grpc.StatusCode.INTERNAL
UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


def test_a_death_costs_those_in_flight_and_nobody_else(steered: SteeredServer) -> None:
    restarts, failed = steered.sample("nmt_worker_restarts_total"), steered.lost("failed")
    cancelled = steered.lost("cancelled")
    victim = steered.hold()
    survivors = [steered.queue(2 * MAX_ROWS) for _ in range(3)]
    steered.order("die")
    assert victim.code() is INTERNAL
    assert victim.details() == "a worker died; the server's log has the details"
    steered.order("go")
    assert {call.code() for call in survivors} == {OK}
    eventually(steered.is_idle)
    assert steered.sample("nmt_worker_restarts_total") == restarts + 1
    # The call gives up the others as soon as it hears of the first.
    assert steered.lost("failed") == failed + MAX_ROWS
    assert steered.lost("cancelled") == cancelled
    assert "SystemExit: injected" in steered.server.log()


def test_deaths_under_load_leave_no_call_without_a_status(steered: SteeredServer) -> None:
    restarts = steered.sample("nmt_worker_restarts_total")
    codes, enough = list[grpc.StatusCode](), Event()

    def came(code: grpc.StatusCode, count: int) -> bool:
        return codes.count(code) >= count

    def call_until_enough() -> None:
        while not enough.is_set():
            codes.append(steered.call(MAX_ROWS).code())

    threads = [Thread(target=call_until_enough) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for deaths in range(1, 4):
            steered.order("die")
            eventually(partial(came, INTERNAL, deaths))
            eventually(partial(came, OK, codes.count(OK) + len(threads)))
    finally:
        enough.set()
        for thread in threads:
            thread.join()
    assert set(codes) == {OK, INTERNAL}
    assert steered.sample("nmt_worker_restarts_total") == restarts + 3


def test_health_tells_of_a_model_that_does_not_come_back_until_it_does(
    steered: SteeredServer,
) -> None:
    watch = HealthStub(steered.channel).Watch(HealthCheckRequest(service=STEERED))
    assert next(watch).status == SERVING
    victim, waiting = steered.hold(), steered.queue(MAX_ROWS)
    steered.order("break")
    steered.order("die")
    assert victim.code() is INTERNAL
    assert waiting.code() is INTERNAL, "nobody can be hoped for"

    assert next(watch).status == NOT_SERVING
    assert [steered.health(name) for name in ("", OTHER, "liveness")] == [SERVING] * 3
    assert steered.call().code() is UNAVAILABLE
    assert steered.call(model=OTHER).code() is OK

    steered.order("mend")
    steered.order("go")
    assert next(watch).status == SERVING
    assert steered.call().code() is OK
    watch.cancel()
