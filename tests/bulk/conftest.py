"""A tiny model, a server of it, and texts of every kind for them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from service.client.local import LocalClient
from tests.running_server import RunningServer, running_server
from tests.tiny_bundle import tiny_bundle


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the bundle tiny-transformer."""
    directory = tmp_path_factory.mktemp("models")
    tiny_bundle(directory / "transformer", "transformer")
    return directory


@pytest.fixture(scope="session")
def local(models: Path) -> Iterator[LocalClient]:
    with LocalClient(models) as client:
        yield client


@pytest.fixture(scope="session")
def server(models: Path) -> Iterator[RunningServer]:
    with running_server(models) as server:
        yield server
