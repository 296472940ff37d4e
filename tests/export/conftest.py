"""Tiny networks with everything that exporting them needs, and int8 bundles of them."""

from pathlib import Path

import pytest

from export.assemble import Description, graph_files, manifest_for
from export.quantize import calibrate
from export.shortlist import build_lexicon
from service.bundle import SHORTLIST_NAME, Bundle, write_bundle
from tests.tiny_bundle import LIMITS, TEXT, network_bundle, random_sources, tiny_network
from training.data import Example
from training.model import Translator
from training.vocabulary import train_vocabulary

ARCHITECTURES = ["transformer", "bahdanau"]


@pytest.fixture(scope="session", params=ARCHITECTURES)
def network(request: pytest.FixtureRequest) -> Translator:
    return tiny_network(request.param)


@pytest.fixture(scope="session")
def vocabulary(network: Translator) -> bytes:
    return train_vocabulary(TEXT * 25, network.config.vocabulary_size, 1.0)


@pytest.fixture(scope="session")
def description() -> Description:
    return Description("tiny", "1", "en", "fr", LIMITS, attention_layer=0)


@pytest.fixture(scope="session")
def both(
    network: Translator,
    vocabulary: bytes,
    description: Description,
    tmp_path_factory: pytest.TempPathFactory,
) -> Bundle:
    """A bundle in float32 and int8, calibrated on random words."""
    options = description.graph_options
    sources = random_sources(24)
    ranges = calibrate(network, options, list(zip(sources, sources[::-1], strict=True)))
    files = graph_files(network, ["fp32", "int8"], options, ranges)
    directory: Path = tmp_path_factory.mktemp("bundles") / "both"
    manifest = manifest_for(network, description, ["fp32", "int8"], {})
    return write_bundle(directory, manifest, files | {"source.model": vocabulary})


@pytest.fixture(scope="session")
def listed(
    network: Translator,
    vocabulary: bytes,
    description: Description,
    tmp_path_factory: pytest.TempPathFactory,
) -> Bundle:
    """An int8 bundle with shortlists, learned from random words."""
    options = description.graph_options
    sources = random_sources(24)
    pairs = list(zip(sources, sources[::-1], strict=True))
    lexicon = build_lexicon([Example(*pair) for pair in pairs], vocabulary, num_common=32)
    files = graph_files(network, ["int8"], options, calibrate(network, options, pairs), lexicon)
    files |= {"source.model": vocabulary, SHORTLIST_NAME: lexicon.to_bytes()}
    directory: Path = tmp_path_factory.mktemp("bundles") / "listed"
    return write_bundle(
        directory, manifest_for(network, description, ["int8"], {}, shortlist=True), files
    )


@pytest.fixture(scope="session")
def halved(network: Translator, tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    """A bundle in float16."""
    directory: Path = tmp_path_factory.mktemp("bundles") / "halved"
    return network_bundle(directory, network, LIMITS, "fp16")
