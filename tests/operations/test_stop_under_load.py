"""SIGTERM under many calls, some of which nothing keeps from coming: OK or UNAVAILABLE, no other.

These callers go on as fast as they can, whatever they are told, until the process has ended, so
that calls arrive at every moment of a stop.
"""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event, Lock, Thread

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest
from grpc_health.v1.health_pb2_grpc import HealthStub
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest
from grpc_reflection.v1alpha.reflection_pb2_grpc import ServerReflectionStub

from service.pb import translation_pb2 as pb
from service.pb.translation_pb2_grpc import TranslationServiceStub
from tests.operations.steered_server import NOT_SERVING, SERVING, STEERED, TEXT
from tests.running_server import RunningServer, eventually, running_server

OK, UNAVAILABLE = grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE
NUM_CONNECTIONS, CALLERS_PER_CONNECTION = 8, 4
# More than a test may take: a stop that waits for its end hasn't counted its calls.
ENDLESS_DRAIN = "--drain-seconds=3600"
REQUEST = pb.TranslateRequest(contents=[TEXT], model=STEERED)
# Otherwise channels to one address share a connection.
ALONE = [("grpc.use_local_subchannel_pool", 1)]


class Callers:
    """Threads that call on connections of their own, and count how their calls end."""

    def __init__(self, channels: list[grpc.Channel]) -> None:
        self.codes = Counter[grpc.StatusCode]()
        self._lock = Lock()
        self._enough = Event()
        self._threads = [
            Thread(target=self._call, args=(channel,))
            for channel in channels
            for _ in range(CALLERS_PER_CONNECTION)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._enough.set()
        for thread in self._threads:
            thread.join()

    def _call(self, channel: grpc.Channel) -> None:
        stub = TranslationServiceStub(channel)
        while not self._enough.is_set():
            code = stub.Translate.future(REQUEST).code()
            with self._lock:
                self.codes[code] += 1


@contextmanager
def callers_of(server: RunningServer) -> Iterator[Callers]:
    """Callers each of whom was answered before."""
    with ExitStack() as stack:
        channels = [
            stack.enter_context(grpc.insecure_channel(server.address, options=ALONE))
            for _ in range(NUM_CONNECTIONS)
        ]
        callers = Callers(channels)
        stack.callback(callers.stop)
        eventually(lambda: callers.codes[OK] > NUM_CONNECTIONS * CALLERS_PER_CONNECTION)
        yield callers


@pytest.mark.parametrize("stop", range(5))
def test_whenever_a_call_comes_it_is_answered_or_may_be_tried_elsewhere(
    stop: int, models: Path, tmp_path: Path
) -> None:
    flags = ("--workers=1", ENDLESS_DRAIN, "--log-format=json", "--request-log=all")
    with running_server(models, *flags, log_file=tmp_path / "log") as server:
        with callers_of(server) as callers:
            server.process.terminate()
            assert server.process.wait() == 0
        lines = [json.loads(line) for line in server.log().splitlines()]
    assert callers.codes.keys() == {OK, UNAVAILABLE}
    answers = Counter(line["code"] for line in lines if "code" in line)
    assert answers.keys() == {"OK", "UNAVAILABLE"}
    assert answers["OK"] == callers.codes[OK], "what was answered has come to its caller"
    assert lines[-1]["message"] == "stopped; everything that was accepted is answered"


def test_streams_that_their_clients_keep_open_do_not_hold_up_a_stop(models: Path) -> None:
    with running_server(models, ENDLESS_DRAIN) as server, ExitStack() as stack:
        channel = stack.enter_context(grpc.insecure_channel(server.address))
        enough = Event()
        stack.callback(enough.set)

        def ask() -> Iterator[ServerReflectionRequest]:
            yield ServerReflectionRequest(list_services="")
            enough.wait()

        watch = HealthStub(channel).Watch(HealthCheckRequest())
        reflection = ServerReflectionStub(channel).ServerReflectionInfo(ask())
        assert next(watch).status == SERVING
        assert next(reflection).list_services_response.service
        server.process.terminate()
        assert server.process.wait() == 0
        assert [update.status for update in watch] == [NOT_SERVING]
        assert reflection.code() is UNAVAILABLE


def test_a_call_whose_request_never_comes_does_not_hold_up_a_stop(models: Path) -> None:
    with running_server(models, ENDLESS_DRAIN) as server, ExitStack() as stack:
        channel = stack.enter_context(grpc.insecure_channel(server.address))
        asked, enough = Event(), Event()
        stack.callback(enough.set)

        def ask() -> Iterator[bytes]:
            asked.set()
            enough.wait()
            yield b""

        # The server takes it for a request that is on the way.
        call = channel.stream_unary("/nmt.v1.TranslationService/Translate", None, None)
        answer = call.future(ask())
        assert asked.wait(30)
        assert TranslationServiceStub(channel).Translate(REQUEST).translations
        server.process.terminate()
        assert server.process.wait() == 0
        assert answer.code() is UNAVAILABLE
