"""A real server's way from its start to its end: signals, health, and what becomes of callers."""

import json
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from service.pb import translation_pb2 as pb
from service.pb.translation_pb2_grpc import TranslationServiceStub
from tests.running_server import RunningServer, eventually, run_service, running_server

SERVING, NOT_SERVING = HealthCheckResponse.SERVING, HealthCheckResponse.NOT_SERVING
OK, UNAVAILABLE = grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE
REQUEST = pb.TranslateRequest(
    contents=["Two young women are walking."] * 4, model="tiny-transformer"
)


def translate(channel: grpc.Channel) -> grpc.StatusCode:
    code: grpc.StatusCode = TranslationServiceStub(channel).Translate.future(REQUEST).code()
    return code


def health_of(channel: grpc.Channel, name: str) -> int:
    status: int = HealthStub(channel).Check(HealthCheckRequest(service=name)).status
    return status


def names_of(channel: grpc.Channel) -> list[str]:
    listed = TranslationServiceStub(channel).ListModels(pb.ListModelsRequest())
    return [model.name for model in listed.models]


class Callers:
    """Threads that call a server all the time, until it fails them or they are told to stop."""

    def __init__(self, channel: grpc.Channel, count: int = 4) -> None:
        self.codes: list[grpc.StatusCode] = []
        self._channel = channel
        self._enough = Event()
        self._threads = [Thread(target=self._call) for _ in range(count)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._enough.set()
        self.join()

    def join(self) -> None:
        """Returns once every caller was failed or told to stop."""
        for thread in self._threads:
            thread.join()

    def _call(self) -> None:
        while not self._enough.is_set():
            self.codes.append(code := translate(self._channel))
            if code is not OK:
                return


@contextmanager
def calls_to(server: RunningServer) -> Iterator[tuple[grpc.Channel, Callers]]:
    """A channel and callers on it, all of whom were answered before."""
    with grpc.insecure_channel(server.address) as channel:
        callers = Callers(channel)
        try:
            eventually(lambda: len(callers.codes) > 8)
            yield channel, callers
        finally:
            callers.stop()


def logged_codes(server: RunningServer) -> list[str]:
    """The codes that the server ended its translations with."""
    lines = [json.loads(line) for line in server.log().splitlines()]
    return [line["code"] for line in lines if line.get("method", "").endswith("/Translate")]


def test_what_was_accepted_is_answered_after_sigterm_under_load(
    models: Path, tmp_path: Path
) -> None:
    flags = ("--log-format=json", "--request-log=all")
    with running_server(models, *flags, log_file=tmp_path / "log") as server:
        with calls_to(server) as (_, callers):
            server.process.terminate()
            callers.join()
            assert server.process.wait() == 0
        assert set(callers.codes) == {OK, UNAVAILABLE}
        assert Counter(logged_codes(server)) == Counter(code.name for code in callers.codes)


def test_the_log_tells_of_a_stop_and_of_what_it_left(models: Path, tmp_path: Path) -> None:
    endless = pb.TranslateRequest(
        contents=["Two young women are walking."] * 256,
        model="tiny-bahdanau",
        options=pb.DecodingOptions(beam_size=32, max_length=80, max_length_ratio=0),
    )
    flags = ("--log-format=json", "--drain-seconds=0.5", "--shutdown-delay-seconds=0.1")
    with running_server(models, *flags, log_file=tmp_path / "log") as server:
        with grpc.insecure_channel(server.address) as channel:
            call = TranslationServiceStub(channel).Translate.future(endless)
            eventually(lambda: server.sample("nmt_rows_in_flight", model="tiny-bahdanau"))
            server.process.terminate()
            assert server.process.wait() == 0
            assert call.code() is UNAVAILABLE
        told = [line for line in map(json.loads, server.log().splitlines()) if "requests" in line]
    signalled, draining, stopped = told
    assert signalled["message"] == "SIGTERM: the server stops"
    assert (signalled["delay_seconds"], signalled["drain_seconds"]) == (0.1, 0.5)
    assert stopped["level"] == "WARNING"
    for line in told:
        assert line["requests"] == 1 and 0 < line["sentences"] <= 256


def test_the_log_of_a_stop_without_callers_ends_with_all_is_answered(
    models: Path, tmp_path: Path
) -> None:
    with running_server(models, "--drain-seconds=0", log_file=tmp_path / "log") as server:
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait() == 0
        signalled, draining, stopped = server.log().splitlines()[-3:]
    assert "SIGINT: the server stops requests=0 sentences=0" in signalled
    assert "new requests are refused" in draining
    assert stopped.endswith("stopped; everything that was accepted is answered")


def test_a_server_that_logs_json_says_nothing_else(models: Path, tmp_path: Path) -> None:
    flags = ("--log-format=json", "--admin=on", "--admin-port=0")
    with running_server(models, *flags, log_file=tmp_path / "log") as server:
        server.process.terminate()
        assert server.process.wait() == 0
        assert server.process.stdout and server.process.stdout.read() == ""
        lines = list(map(json.loads, server.log().splitlines()))
    assert any(line["message"].startswith("serving tiny-bahdanau 1") for line in lines)


def test_what_keeps_a_server_from_starting_is_json_too(models: Path) -> None:
    environment = {"NMT_LOG_FORMAT": "json", "NMT_SERVICE_HOST": "10.0.0.1"}
    faulty = run_service("serve", "--port=many", f"--models={models}", **environment)
    ports = ("--port=0", "--metrics-port=0")
    missing = run_service("serve", "--models=nowhere", *ports, **environment)
    for result, fault in (
        (faulty, "configuration: --port is 'many': expected a whole number"),
        (missing, "models: nowhere is not a directory"),
    ):
        assert (result.returncode, result.stdout) == (2, "")
        link, error = map(json.loads, result.stderr.splitlines())
        assert (link["level"], error["level"]) == ("WARNING", "ERROR")
        assert link["message"].endswith("NMT_SERVICE_HOST") and error["message"] == fault


def test_callers_who_heed_health_notice_nothing_of_a_stop(models: Path) -> None:
    with running_server(models, "--shutdown-delay-seconds=1") as server:
        with calls_to(server) as (channel, callers):
            watch = HealthStub(channel).Watch(HealthCheckRequest())
            assert next(watch).status == SERVING
            server.process.terminate()
            assert next(watch).status == NOT_SERVING
            callers.stop()
        assert set(callers.codes) == {OK}
        assert server.process.wait() == 0


def test_in_the_delay_requests_are_answered_while_health_says_no(models: Path) -> None:
    with running_server(models, "--shutdown-delay-seconds=3600") as server:
        with grpc.insecure_channel(server.address) as channel:
            watch = HealthStub(channel).Watch(HealthCheckRequest(service="tiny-bahdanau"))
            assert next(watch).status == SERVING
            server.process.terminate()
            assert next(watch).status == NOT_SERVING
            assert translate(channel) is OK
            names = ("", "tiny-transformer", "liveness")
            assert [health_of(channel, name) for name in names] == [
                NOT_SERVING,
                NOT_SERVING,
                SERVING,
            ]
            server.process.terminate()
            assert server.process.wait() == 128 + signal.SIGTERM


def test_sighup_has_the_models_directory_looked_at(models: Path, tmp_path: Path) -> None:
    served = tmp_path / "models"
    shutil.copytree(models / "transformer", served / "transformer")
    with running_server(served, "--watch-seconds=0") as server:
        with grpc.insecure_channel(server.address) as channel:
            shutil.copytree(models / "bahdanau", served / ".bahdanau")
            (served / ".bahdanau").rename(served / "bahdanau")
            assert names_of(channel) == ["tiny-transformer"]
            server.process.send_signal(signal.SIGHUP)
            eventually(lambda: names_of(channel) == ["tiny-bahdanau", "tiny-transformer"])
            assert health_of(channel, "tiny-bahdanau") == SERVING
            shutil.rmtree(served / "bahdanau")
            server.process.send_signal(signal.SIGHUP)
            eventually(lambda: names_of(channel) == ["tiny-transformer"])
            watch = HealthStub(channel).Watch(HealthCheckRequest(service="tiny-bahdanau"))
            assert next(watch).status == HealthCheckResponse.SERVICE_UNKNOWN
            watch.cancel()


def test_a_sighup_that_finds_nothing_to_serve_changes_nothing(models: Path, tmp_path: Path) -> None:
    served = tmp_path / "models"
    shutil.copytree(models / "transformer", served / "transformer")
    log_file = tmp_path / "log"
    with running_server(served, "--watch-seconds=0", log_file=log_file) as server:
        shutil.rmtree(served)
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: "SIGHUP changed nothing" in server.log())
        with grpc.insecure_channel(server.address) as channel:
            assert translate(channel) is OK


def test_the_admin_port_is_there_when_it_is_asked_for(models: Path, server: RunningServer) -> None:
    with running_server(models, "--admin=on", "--admin-port=0") as with_admin:
        with grpc.insecure_channel(f"localhost:{with_admin.admin_port}") as channel:
            assert health_of(channel, "liveness") == SERVING
            assert translate(channel) is grpc.StatusCode.UNIMPLEMENTED
    assert server.admin_port == 0


@pytest.mark.slow
def test_a_client_may_ping_an_idle_connection_every_ten_seconds(server: RunningServer) -> None:
    options = [
        ("grpc.keepalive_time_ms", 10_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.use_local_subchannel_pool", 1),
    ]
    left, states = Event(), list[grpc.ChannelConnectivity]()

    def changed(state: grpc.ChannelConnectivity) -> None:
        states.append(state)
        if grpc.ChannelConnectivity.READY in states[:-1]:
            left.set()

    with grpc.insecure_channel(server.address, options=options) as channel:
        channel.subscribe(changed)
        assert translate(channel) is OK
        # The fourth ping too many would be answered with GOAWAY.
        assert not left.wait(55), states
