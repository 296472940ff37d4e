"""A directory of int8 bundles of tiny networks, as `python -m export bundle` writes them."""

from pathlib import Path

import pytest

from export.assemble import Description, graph_files, manifest_for
from export.quantize import calibrate
from service.bundle import Limits, write_bundle
from tests.corpus import SENTENCES
from tests.tiny_bundle import VOCABULARY_SIZE, random_sources, tiny_network
from training.vocabulary import train_vocabulary

LIMITS = Limits(max_source_tokens=256, max_target_tokens=128)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`transformer` and `bahdanau`, of one vocabulary."""
    directory: Path = tmp_path_factory.mktemp("models")
    vocabulary = train_vocabulary(SENTENCES * 20, VOCABULARY_SIZE, 1.0)
    sources = random_sources(12)
    for architecture in ("transformer", "bahdanau"):
        network = tiny_network(architecture)
        description = Description(architecture, "1", "en", "fr", LIMITS, attention_layer=0)
        options = description.graph_options
        ranges = calibrate(network, options, list(zip(sources, sources[::-1], strict=True)))
        files = graph_files(network, ["int8"], options, ranges) | {"source.model": vocabulary}
        manifest = manifest_for(network, description, ["int8"], {})
        write_bundle(directory / architecture, manifest, files)
    return directory
