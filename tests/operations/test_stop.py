"""SIGTERM while calls are in flight and in the queue: nothing that was accepted is lost."""

from pathlib import Path

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest
from grpc_health.v1.health_pb2_grpc import HealthStub

from tests.operations.steered_server import NOT_SERVING, SERVING, steered_server


def test_what_is_in_flight_and_in_the_queue_is_answered_after_sigterm(
    models: Path, tmp_path: Path
) -> None:
    with steered_server(models, log_file=tmp_path / "log") as steered:
        watch = HealthStub(steered.channel).Watch(HealthCheckRequest())
        assert next(watch).status == SERVING
        accepted = [steered.hold(), *(steered.queue(64) for _ in range(4))]
        num_steps = steered.num_steps
        steered.server.process.terminate()
        assert [update.status for update in watch] == [NOT_SERVING]
        assert steered.num_steps == num_steps
        steered.order("go")
        assert {call.code() for call in accepted} == {grpc.StatusCode.OK}
        assert steered.server.process.wait() == 0
