"""A model is replaced again and again while clients translate, and only its version shows it."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import cycle
from pathlib import Path

import pytest

from service.bundle import Bundle
from service.client import Client
from service.client.local import LocalClient
from service.errors import TranslationError
from service.pb import translation_pb2 as pb
from tests.installing import install, overwrite, switch, version_of
from tests.running_server import RunningServer, eventually, running_server
from tests.tiny_bundle import LIMITS, network_bundle, tiny_network

REQUEST = pb.TranslateRequest(contents=["Two young women are walking.", "A man in a blue shirt."])
NUM_REPLACEMENTS, NUM_NETWORKS = 20, 3


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> list[Bundle]:
    """Versions of one model, of three networks that say different things."""
    place = tmp_path_factory.mktemp("bundles")
    networks = [
        network_bundle(place / f"network-{seed}", tiny_network("bahdanau", seed), LIMITS)
        for seed in range(NUM_NETWORKS)
    ]
    return [
        version_of(network, place / f"version-{number}", str(number))
        for number, network in zip(range(NUM_REPLACEMENTS + 1), cycle(networks), strict=False)
    ]


def texts(response: pb.TranslateResponse) -> tuple[str, ...]:
    return tuple(translation.translated_text for translation in response.translations)


class Callers:
    """Clients that translate without a pause, and remember what each version said."""

    def __init__(self, address: str, count: int = 2) -> None:
        self.answers: Counter[tuple[str, tuple[str, ...]]] = Counter()
        self.failures: list[TranslationError] = []
        self._address = address
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run) for _ in range(count)]

    @contextmanager
    def calling(self) -> Iterator[None]:
        """They call inside of the block."""
        for thread in self._threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join()

    def _run(self) -> None:
        with Client(self._address) as client:
            while not self._stop.is_set():
                try:
                    response = client.translate(REQUEST)
                except TranslationError as error:
                    self.failures.append(error)
                    continue
                [version] = {each.model_version for each in response.translations}
                self.answers[version, texts(response)] += 1


def serves(server: RunningServer, version: str) -> bool:
    with Client(server.address) as client:
        return [model.version for model in client.list_models().models] == [version]


@pytest.fixture(scope="module")
def said(bundles: list[Bundle], tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, ...]]:
    """What each network says, and it is another thing."""
    answers = []
    for bundle in bundles[:NUM_NETWORKS]:
        models = tmp_path_factory.mktemp("models")
        install(bundle, models / "it")
        with LocalClient(models) as client:
            answers.append(texts(client.translate(REQUEST)))
    assert len(set(answers)) == NUM_NETWORKS
    return answers


@pytest.mark.parametrize("ways", [(install, overwrite), (switch,)])
def test_a_bundle_is_replaced_twenty_times_under_load_without_a_failed_call(
    ways: Sequence[Callable[[Bundle, Path], None]],
    bundles: list[Bundle],
    said: list[tuple[str, ...]],
    tmp_path: Path,
) -> None:
    models = tmp_path / "models"
    models.mkdir()
    ways[0](bundles[0], models / "it")
    flags = ("--watch-seconds=0.05", "--workers=1", "--max-rows=8")
    with running_server(models, *flags, log_file=tmp_path / "log") as server:
        callers = Callers(server.address)
        with callers.calling():
            for bundle, put in zip(bundles[1:], cycle(ways), strict=False):
                put(bundle, models / "it")
                eventually(partial(serves, server, bundle.manifest.version))
        assert server.sample("nmt_reloads_total", outcome="loaded") == len(bundles)
        eventually(lambda: server.sample("nmt_model_info") == 1)

    assert callers.failures == []
    assert len({version for version, _ in callers.answers}) > NUM_REPLACEMENTS / 2
    for version, answer in callers.answers:
        assert answer == said[int(version) % NUM_NETWORKS]
