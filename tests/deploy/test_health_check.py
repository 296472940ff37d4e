"""The health check of the container, against real servers."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.client.health import SERVING, address_to_check, health_of
from service.errors import ConfigError
from tests.running_server import RunningServer, running_server

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running_server(ROOT / "models") as server:
        yield server


def check(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "service", "health", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_serving_server_is_healthy(server: RunningServer) -> None:
    done = check(NMT_PORT=str(server.port))
    assert (done.returncode, done.stdout) == (0, "SERVING\n")


def test_a_port_that_nobody_listens_on_is_unhealthy() -> None:
    with socket.socket() as taken:  # bound, so that nobody else takes it, but not listening
        taken.bind(("localhost", 0))
        address = f"localhost:{taken.getsockname()[1]}"
        done = check(f"--server={address}")
    assert (done.returncode, done.stdout) == (1, "UNAVAILABLE\n")
    assert done.stderr.startswith(f"{address}: failed to connect")


def test_a_server_that_says_nothing_is_unhealthy() -> None:
    with socket.create_server(("localhost", 0)) as silent:
        address = f"localhost:{silent.getsockname()[1]}"
        assert health_of(address, timeout_seconds=0.2).status != SERVING


def test_a_model_can_be_asked_for(server: RunningServer) -> None:
    assert health_of(server.address, "transformer-en-fr").status == SERVING
    assert health_of(server.address, "nobody").status == "NOT_FOUND"


def test_a_faulty_configuration_is_unhealthy() -> None:
    done = check(NMT_PORT="many")
    assert done.returncode == 1 and "NMT_PORT" in done.stderr


@pytest.mark.parametrize(
    ("environment", "address"),
    [
        ({}, "localhost:50051"),
        ({"NMT_HOST": "0.0.0.0", "NMT_PORT": "7"}, "localhost:7"),
        ({"NMT_HOST": "[::]"}, "localhost:50051"),
        ({"NMT_HOST": "10.0.0.1"}, "10.0.0.1:50051"),
        ({"NMT_TLS_CERTIFICATE": "c", "NMT_TLS_KEY": "k", "NMT_HEALTH_PORT": "8"}, "localhost:8"),
    ],
)
def test_the_check_goes_where_the_server_answers_in_plaintext(
    environment: dict[str, str], address: str
) -> None:
    assert address_to_check(environment) == address


def test_the_check_refuses_what_the_server_would_refuse() -> None:
    with pytest.raises(ConfigError):
        address_to_check({"NMT_TLS_KEY": "k"})
