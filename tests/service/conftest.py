"""Fixtures of the tests that need a whole server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.client import Client
from tests.running_server import RunningServer, running_server
from tests.tiny_bundle import tiny_bundle


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the bundles tiny-bahdanau and tiny-transformer."""
    directory = tmp_path_factory.mktemp("models")
    for architecture in ("bahdanau", "transformer"):
        tiny_bundle(directory / architecture, architecture)
    return directory


@pytest.fixture(scope="session")
def server(models: Path) -> Iterator[RunningServer]:
    """A server of both tiny models that answers with tiny-transformer by default."""
    with running_server(models, "--default-model=tiny-transformer") as server:
        yield server


@pytest.fixture
def client(server: RunningServer) -> Iterator[Client]:
    with Client(server.address) as client:
        yield client
