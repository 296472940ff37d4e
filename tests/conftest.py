"""Fixtures that several test modules share."""

from pathlib import Path

import pytest

from service.bundle import Bundle
from tests.tiny_bundle import tiny_bundle


@pytest.fixture(scope="session", params=["transformer", "bahdanau"])
def bundle(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A tiny bundle of each architecture in turn."""
    directory: Path = tmp_path_factory.mktemp("bundles") / request.param
    return tiny_bundle(directory, request.param)
