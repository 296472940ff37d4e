"""One server for the whole suite, whose steps the tests decide, and which tells all that it can."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.operations.steered_server import TOKEN, SteeredServer, steered_server
from tests.otlp_receiver import Receiver, otlp_receiver
from tests.tiny_bundle import tiny_bundle


@pytest.fixture(scope="session")
def receiver() -> Iterator[Receiver]:
    """Where the server sends its traces."""
    with otlp_receiver() as receiver:
        yield receiver


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the bundles tiny-bahdanau and tiny-transformer."""
    directory = tmp_path_factory.mktemp("models")
    for architecture in ("bahdanau", "transformer"):
        tiny_bundle(directory / architecture, architecture)
    return directory


@pytest.fixture(scope="session")
def _server(
    models: Path, receiver: Receiver, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SteeredServer]:
    folder = tmp_path_factory.mktemp("operations")
    (folder / "tokens").write_text(f"{TOKEN}\n")
    flags = (
        f"--tokens-file={folder / 'tokens'}",
        "--max-contents=10000",
        "--log-level=debug",
        "--request-log=all",
        "--log-texts=on",
        f"--otlp-endpoint={receiver.endpoint}",
        "--exemplars=on",
    )
    with steered_server(models, *flags, log_file=folder / "log", token=TOKEN) as server:
        yield server


@pytest.fixture
def steered(_server: SteeredServer) -> Iterator[SteeredServer]:
    """The server, which is idle before and after a test."""
    yield _server
    _server.set_free()
