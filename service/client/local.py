"""Translating in this process: bundles from a directory, no server and no network."""

import asyncio
from pathlib import Path

from service.catalog import Catalog
from service.config import ServerConfig
from service.pb import translation_pb2 as pb
from service.rpc import RequestLimits, TranslationServicer


class LocalClient:
    """The methods of `Client` over the bundles of a directory; a context manager.

    Raises ConfigError and BundleError if they can't be loaded.
    """

    def __init__(self, models: Path) -> None:
        config = ServerConfig(models=models)
        self._catalog = Catalog(config)
        self._servicer = TranslationServicer(self._catalog, RequestLimits.of(config))
        asyncio.run(self._catalog.load())

    def __enter__(self) -> "LocalClient":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        asyncio.run(self._catalog.close())

    def translate(self, request: pb.TranslateRequest) -> pb.TranslateResponse:
        return asyncio.run(self._servicer.translate(request))

    def score(self, request: pb.ScoreRequest) -> pb.ScoreResponse:
        return asyncio.run(self._servicer.score(request))

    def list_models(self) -> pb.ListModelsResponse:
        return asyncio.run(self._servicer.list_models())
