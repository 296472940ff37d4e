"""TLS on a real server: who may connect, certificates that rotate, and the port for probes."""

import socket
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

import grpc
import pytest
import trustme
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from service.pb import translation_pb2 as pb
from service.pb.translation_pb2_grpc import TranslationServiceStub
from tests.pems import HOST, Pems
from tests.running_server import RunningServer, eventually, run_service, running_server

# Otherwise channels to one address share a connection.
ALONE = [("grpc.use_local_subchannel_pool", 1)]
REQUEST = pb.TranslateRequest(contents=["Two young women are walking."], model="tiny-transformer")


@pytest.fixture
def pems(tmp_path: Path) -> Pems:
    return Pems(tmp_path)


def tls_server(models: Path, pems: Pems, *flags: str) -> Any:
    log_file = pems.key.with_name("log")
    return running_server(models, *pems.flags, "--health-port=0", *flags, log_file=log_file)


def translate(server: RunningServer, credentials: grpc.ChannelCredentials) -> grpc.StatusCode:
    """How a call on a new connection ends."""
    with grpc.secure_channel(server.address, credentials, options=ALONE) as channel:
        return code_of(channel)


def code_of(channel: grpc.Channel) -> grpc.StatusCode:
    call = TranslationServiceStub(channel).Translate.future(REQUEST)
    code: grpc.StatusCode = call.code()
    return code


def shown_certificate(server: RunningServer) -> bytes:
    """What a new connection is shown."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    with socket.create_connection((HOST, server.port)) as plain:
        with context.wrap_socket(plain, server_hostname=HOST) as wrapped:
            return wrapped.getpeercert(binary_form=True) or b""


def test_a_client_that_trusts_the_certificate_is_served(models: Path, pems: Pems) -> None:
    with tls_server(models, pems) as server:
        assert translate(server, pems.trusting()) is grpc.StatusCode.OK
        stranger = grpc.ssl_channel_credentials(trustme.CA().cert_pem.bytes())
        assert translate(server, stranger) is grpc.StatusCode.UNAVAILABLE
        with grpc.insecure_channel(server.address) as channel:
            assert code_of(channel) is grpc.StatusCode.UNAVAILABLE


def test_mutual_tls_asks_for_a_certificate_of_the_given_authority(models: Path, pems: Pems) -> None:
    with tls_server(models, pems, f"--tls-client-ca={pems.client_ca}") as server:
        assert translate(server, pems.trusting(pems.client())) is grpc.StatusCode.OK
        assert translate(server, pems.trusting()) is grpc.StatusCode.UNAVAILABLE
        strange = trustme.CA().issue_cert("client.example")
        assert translate(server, pems.trusting(strange)) is grpc.StatusCode.UNAVAILABLE


def test_probes_are_answered_in_plaintext_and_nothing_else_is(models: Path, pems: Pems) -> None:
    with tls_server(models, pems) as server:
        with grpc.insecure_channel(f"{HOST}:{server.health_port}") as channel:
            for name in ("", "liveness", "tiny-transformer"):
                answer = HealthStub(channel).Check(HealthCheckRequest(service=name))
                assert answer.status == HealthCheckResponse.SERVING
            assert code_of(channel) is grpc.StatusCode.UNIMPLEMENTED


@contextmanager
def callers(server: RunningServer, pems: Pems, count: int) -> Iterator[list[grpc.StatusCode]]:
    """How calls end that are made all the time, each on a new connection."""
    codes, enough = list[grpc.StatusCode](), Event()

    def call() -> None:
        while not enough.is_set():
            codes.append(translate(server, pems.trusting()))

    threads = [Thread(target=call) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield codes
    finally:
        enough.set()
        for thread in threads:
            thread.join()


def more_than(count: int, codes: list[grpc.StatusCode]) -> bool:
    return len(codes) > count


def test_certificates_rotate_under_load_without_a_failed_call(models: Path, pems: Pems) -> None:
    with tls_server(models, pems) as server, callers(server, pems, 2) as codes:
        with grpc.secure_channel(server.address, pems.trusting()) as channel:
            watch = HealthStub(channel).Watch(HealthCheckRequest())
            assert next(watch).status == HealthCheckResponse.SERVING
            shown = {shown_certificate(server)}
            for rotation in range(1, 6):
                pems.rotate()
                shown.add(shown_certificate(server))
                assert len(shown) == rotation + 1
                eventually(partial(more_than, len(codes) + 2, codes))
                assert code_of(channel) is grpc.StatusCode.OK
            assert watch.is_active()
            watch.cancel()
        assert set(codes) == {grpc.StatusCode.OK}


def test_a_broken_certificate_leaves_the_old_one_and_says_why(models: Path, pems: Pems) -> None:
    with tls_server(models, pems) as server:
        before = shown_certificate(server)
        pems.certificate.write_text("half a certi")
        assert shown_certificate(server) == before
        assert translate(server, pems.trusting()) is grpc.StatusCode.OK
        assert f"--tls-certificate {pems.certificate}: no certificate in PEM" in server.log()
        pems.rotate()
        assert shown_certificate(server) != before
        assert translate(server, pems.trusting()) is grpc.StatusCode.OK


def test_a_key_of_another_certificate_stops_the_start(models: Path, pems: Pems) -> None:
    pems.key.write_bytes(pems.client().private_key_pem.bytes())
    result = run_service("serve", f"--models={models}", "--port=0", *pems.flags)
    assert result.returncode == 2
    assert f"--tls-key {pems.key}: not the key of the certificate" in result.stderr


def test_a_taken_health_port_is_refused(models: Path, pems: Pems, server: RunningServer) -> None:
    flags = ("--port=0", "--metrics-port=0", f"--health-port={server.port}", *pems.flags)
    result = run_service("serve", f"--models={models}", *flags)
    assert result.returncode == 2
    assert f"--health-port: can't listen on localhost:{server.port}" in result.stderr
