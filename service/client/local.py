"""Translating in this process: bundles from a directory, no server and no network."""

import asyncio
from pathlib import Path

from service.config import ServerConfig
from service.pb import translation_pb2 as pb
from service.rpc import RequestLimits, TranslationServicer, load_model, make_router, read_bundles


class LocalClient:
    """The methods of `Client` over the bundles of a directory; a context manager.

    Raises ConfigError and BundleError if they can't be loaded.
    """

    def __init__(self, models: Path) -> None:
        config = ServerConfig(models=models)
        self._models = [load_model(bundle, config) for bundle in read_bundles(models)]
        self._servicer = TranslationServicer(RequestLimits.of(config))
        self._servicer.router = make_router(self._models, config.default_model)

    def __enter__(self) -> "LocalClient":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        for model in self._models:
            model.translator.engine.close()

    def translate(self, request: pb.TranslateRequest) -> pb.TranslateResponse:
        return asyncio.run(self._servicer.translate(request))

    def list_models(self) -> pb.ListModelsResponse:
        return asyncio.run(self._servicer.list_models())
