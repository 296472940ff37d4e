"""The server's life: loading, serving, draining, stopping, and what its ports answer meanwhile."""

import asyncio
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import grpc
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from service.config import ServerConfig
from service.pb import translation_pb2 as pb
from service.pb.translation_pb2_grpc import TranslationServiceStub
from service.server import Server
from service.server.banner import banner
from tests.corpus import ROOT
from tests.gate import PATIENCE
from tests.installing import spoil
from tests.running_server import RunningServer, run_service, running_server
from tests.started_server import code_of, engine_of, started, until
from tests.toy_bundle import edit, set_to

SERVING, NOT_SERVING = HealthCheckResponse.SERVING, HealthCheckResponse.NOT_SERVING
# Minutes of work for one core: 256 sentences in beams of 32 that never end by themselves.
ENDLESS = pb.TranslateRequest(
    contents=["Two young women are walking."] * 256,
    model="tiny-bahdanau",
    options=pb.DecodingOptions(beam_size=32, max_length=80, max_length_ratio=0),
)

LOADS_FOR_EVER = """
import sys, threading
from pathlib import Path
from service.catalog import loading
from service.config import ServerConfig
from service.server import serve

def load_engine(*arguments, **settings):
    print("loading", flush=True)
    threading.Event().wait()

loading.load_engine = load_engine
serve(ServerConfig(models=Path(sys.argv[1]), port=0, metrics_port=0))
"""


def handled(server: Server, code: str) -> float:
    """How many Translate rpcs ended with a code."""
    names = {"grpc_service": "nmt.v1.TranslationService", "grpc_method": "Translate"}
    labels = {"grpc_type": "unary", **names, "grpc_code": code}
    return server.metrics.registry.get_sample_value("grpc_server_handled_total", labels) or 0


def lost(server: Server, reason: str) -> float:
    """How many sentences for the model of `ENDLESS` were lost for a reason."""
    labels = {"model": ENDLESS.model, "reason": reason}
    return server.metrics.registry.get_sample_value("nmt_lost_sentences_total", labels) or 0


@pytest.mark.parametrize("seconds", [0.2, 1.001])
def test_sentences_whose_callers_deadline_passes_have_expired(seconds: float, models: Path) -> None:
    """gRPC cancels the handler then, and sends the time rounded."""

    async def scenario() -> None:
        async with started(models, workers=1) as (server, channel):
            await server.load()
            engine = engine_of(server, ENDLESS.model)
            call = TranslationServiceStub(channel).Translate(ENDLESS, timeout=seconds)
            assert await code_of(call) is grpc.StatusCode.DEADLINE_EXCEEDED
            await until(lambda: engine.num_accepted == 0 and lost(server, "expired") > 0)
            assert lost(server, "cancelled") == 0

    asyncio.run(scenario())


def test_a_caller_who_leaves_frees_the_rows_and_is_counted(models: Path) -> None:
    async def scenario() -> None:
        async with started(models, workers=1) as (server, channel):
            await server.load()
            engine = engine_of(server, ENDLESS.model)
            call = TranslationServiceStub(channel).Translate(ENDLESS)
            await until(lambda: engine.num_rows > 0)
            call.cancel()
            await until(lambda: engine.num_rows == 0 == engine.num_waiting)
            await until(lambda: handled(server, "Canceled") == 1)
            assert handled(server, "OK") == 0
            assert lost(server, "cancelled") > 0 == lost(server, "expired")

    asyncio.run(scenario())


def test_what_was_accepted_before_a_stop_is_answered(models: Path) -> None:
    async def scenario() -> None:
        async with started(models, workers=1, max_rows=32) as (server, channel):
            await server.load()
            engine = engine_of(server, ENDLESS.model)
            request = pb.TranslateRequest(
                contents=ENDLESS.contents[:8], model=ENDLESS.model, options=ENDLESS.options
            )
            call = TranslationServiceStub(channel).Translate(request)
            await until(lambda: engine.num_rows > 0)
            await server.stop()
            assert len((await call).translations) == 8

    asyncio.run(scenario())


def test_a_drain_ends_with_its_time(models: Path) -> None:
    async def scenario() -> None:
        async with started(models, workers=1, drain_seconds=0) as (server, channel):
            await server.load()
            engine = engine_of(server, ENDLESS.model)
            call = TranslationServiceStub(channel).Translate(ENDLESS)
            await until(lambda: engine.num_rows > 0)
            await server.stop()
            assert await code_of(call) is grpc.StatusCode.UNAVAILABLE
            assert handled(server, "Unavailable") == 1

    asyncio.run(scenario())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_an_idle_server_with_success(number: signal.Signals, models: Path) -> None:
    with running_server(models) as server:
        server.process.send_signal(number)
        assert server.process.wait() == 0


def test_a_signal_ends_a_server_that_still_loads_its_models(models: Path) -> None:
    command = [sys.executable, "-c", LOADS_FOR_EVER, str(models)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "loading\n"
            process.send_signal(signal.SIGHUP)  # is for later
            process.terminate()
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()


def test_watchers_of_health_hear_of_the_stop_and_do_not_delay_it(models: Path) -> None:
    with running_server(models, "--drain-seconds=3600") as server:
        with grpc.insecure_channel(server.address) as channel:
            watch = HealthStub(channel).Watch(HealthCheckRequest())
            assert next(watch).status == SERVING
            server.process.terminate()
            assert [update.status for update in watch] == [NOT_SERVING]
        assert server.process.wait() == 0


def test_a_second_signal_ends_the_server_at_once(models: Path) -> None:
    with running_server(models, "--drain-seconds=3600") as server:
        with grpc.insecure_channel(server.address) as channel:
            watch = HealthStub(channel).Watch(HealthCheckRequest())
            assert next(watch).status == SERVING
            call = TranslationServiceStub(channel).Translate.future(ENDLESS)
            while 'nmt_rows_in_flight{model="tiny-bahdanau"} 0.0' in server.metrics():
                pass
            server.process.terminate()
            assert next(watch).status == NOT_SERVING
            server.process.terminate()
            assert server.process.wait() == 128 + signal.SIGTERM
            assert call.code() is grpc.StatusCode.UNAVAILABLE


def test_the_first_line_says_what_is_served_and_what_to_try(server: RunningServer) -> None:
    assert "tiny-bahdanau 1 (en to fr, fp32 on cpu), tiny-transformer 1" in server.banner
    assert f"python -m service translate --server localhost:{server.port}" in server.banner


def test_a_broken_bundle_beside_good_ones_does_not_keep_a_server_from_starting(
    models: Path, tmp_path: Path
) -> None:
    served = tmp_path / "models"
    shutil.copytree(models, served)
    shutil.copytree(models / "transformer", served / "transformer-2")
    edit(served / "transformer-2", set_to("version", value="2"))
    spoil(served / "transformer-2")
    flags = ("--default-model=tiny-transformer", "--admin=on", "--admin-port=0")
    with running_server(served, *flags, log_file=tmp_path / "log") as server:
        assert "tiny-transformer 1" in server.banner and "tiny-bahdanau 1" in server.banner
        assert f"{served / 'transformer-2'} can't be served: fp32/step.onnx has" in server.log()
        assert server.sample("nmt_failed_bundles") == 1
        assert server.sample("nmt_reloads_total", outcome="failed") == 1
        listed = run_service("admin", f"--server=localhost:{server.admin_port}", "list")
        [row] = [line for line in listed.stdout.splitlines() if line.startswith("transformer-2")]
        assert "FAILED" in row and "fp32/step.onnx has" in row


@pytest.mark.parametrize(
    ("settings", "flags"),
    [
        ({}, ""),
        ({"host": "0.0.0.0", "tokens_file": "t"}, " --token-file FILE"),
        ({"tls_certificate": "c", "tls_key": "k"}, " --ca FILE"),
        (
            {"tls_certificate": "c", "tls_key": "k", "tls_client_ca": "a"},
            " --ca FILE --certificate FILE --key FILE",
        ),
    ],
)
def test_what_there_is_to_try_has_the_flags_that_it_needs(
    settings: dict[str, str], flags: str
) -> None:
    ports = {"port": 1, "metrics_port": 2, "health_port": 0, "admin_port": 0}
    line = banner(ServerConfig(**settings), [], **ports)  # type: ignore[arg-type]
    command = "python -m service translate --server localhost:1"
    assert line.endswith(f'; try: {command}{flags} "I\'m home."')


def test_rpcs_and_models_are_in_the_metrics(server: RunningServer) -> None:
    with grpc.insecure_channel(server.address) as channel:
        TranslationServiceStub(channel).ListModels(pb.ListModelsRequest())
    metrics = server.metrics()
    labels = 'grpc_method="ListModels",grpc_service="nmt.v1.TranslationService",grpc_type="unary"'
    assert f'grpc_server_handled_total{{grpc_code="OK",{labels}}}' in metrics
    assert server.sample("nmt_model_info", model="tiny-bahdanau", precision="fp32") == 1
    assert "nmt_build_info" in metrics


def test_a_method_that_does_not_exist_makes_no_label(server: RunningServer) -> None:
    with grpc.insecure_channel(server.address) as channel:
        with pytest.raises(grpc.RpcError):
            channel.unary_unary("/nmt.v1.TranslationService/Invented", None, None)(b"")
    assert "Invented" not in server.metrics()


def test_a_wrong_flag_and_a_wrong_variable_are_both_named(models: Path) -> None:
    result = run_service("serve", f"--models={models}", "--port=99999", NMT_WORKER="2")
    assert result.returncode == 2
    assert "NMT_WORKER is not a setting; did you mean NMT_WORKERS?" in result.stderr
    assert "--port is 99999: expected at least 0 and at most 65535" in result.stderr


def test_a_directory_without_bundles_is_refused(tmp_path: Path) -> None:
    result = run_service("serve", f"--models={tmp_path}")
    assert (result.returncode, result.stdout) == (2, "")
    assert f"{tmp_path} has no bundle" in result.stderr


@pytest.mark.parametrize(("flag", "port"), [("--port", "port"), ("--metrics-port", "metrics_port")])
def test_a_taken_port_is_refused(flag: str, port: str, models: Path, server: RunningServer) -> None:
    flags = {"--port": "0", "--metrics-port": "0", flag: str(getattr(server, port))}
    arguments = [argument for pair in flags.items() for argument in pair]
    result = run_service("serve", f"--models={models}", *arguments)
    assert result.returncode == 2
    assert f"{flag}: can't listen on localhost:{flags[flag]}" in result.stderr


@pytest.mark.parametrize("host", ["nosuchhost.invalid", "192.0.2.1", "a" * 70])
def test_a_host_that_is_not_here_is_refused_with_the_reason(host: str, models: Path) -> None:
    flags = ("--port=0", "--metrics-port=0", f"--host={host}")
    result = run_service("serve", f"--models={models}", *flags)
    assert result.returncode == 2
    assert f"--host: can't listen on {host}:0: " in result.stderr


def test_an_unserved_default_model_is_refused(models: Path) -> None:
    arguments = ("--port=0", "--metrics-port=0", "--default-model=other")
    result = run_service("serve", f"--models={models}", *arguments)
    assert result.returncode == 2
    assert "default model 'other' is not served; served: tiny-bahdanau" in result.stderr


def test_a_precision_that_a_bundle_lacks_is_refused(models: Path) -> None:
    result = run_service(
        "serve", f"--models={models}", "--port=0", "--metrics-port=0", "--precision=int8"
    )
    assert result.returncode == 2
    assert "precision int8 is not in bundle tiny-bahdanau" in result.stderr


def test_a_bundle_whose_own_beam_has_no_room_in_a_batch_is_refused(
    models: Path, tmp_path: Path
) -> None:
    shutil.copytree(models / "bahdanau", tmp_path / "bahdanau")
    edit(tmp_path / "bahdanau", set_to("search", "beam_size", value=4))
    arguments = ("--port=0", "--metrics-port=0", "--max-rows=3")
    result = run_service("serve", f"--models={tmp_path}", *arguments)
    assert result.returncode == 2
    assert "--max-rows: is 3, but bundle tiny-bahdanau searches with 4 beams" in result.stderr
