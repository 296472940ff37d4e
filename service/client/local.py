"""Translating in this process: bundles from a directory, no server and no network."""

import asyncio
from collections.abc import Coroutine, Generator, Iterable, Iterator
from concurrent.futures import wait
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar
from weakref import WeakSet

from service.catalog import Catalog
from service.client.exchange import LocalCall
from service.client.remote import outcomes
from service.client.streaming import DEFAULT_MAX_UNANSWERED, check_unanswered, exchanged
from service.config import ServerConfig
from service.errors import TranslationError
from service.pb import translation_pb2 as pb
from service.rpc import RequestLimits, TranslationServicer

_Result = TypeVar("_Result")


class LocalClient:
    """The methods of `Client` over the bundles of a directory; a context manager.

    Any thread may call it, several at once: requests share batches, on an event loop of its own, as
    a server's do. Raises ConfigError and BundleError if the bundles can't be loaded.
    """

    def __init__(self, models: Path) -> None:
        config = ServerConfig(models=models)
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="local-client", daemon=True)
        self._thread.start()
        self._catalog = Catalog(config)
        self._closing = asyncio.Event()
        self._streams: WeakSet[LocalCall] = WeakSet()
        limits = RequestLimits.of(config)
        self._servicer = TranslationServicer(self._catalog, limits, self._closing)
        try:
            self._result(self._catalog.load())
        except BaseException:
            self._end_loop()
            raise

    def __enter__(self) -> "LocalClient":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends what is in flight with Unavailable."""
        self._loop.call_soon_threadsafe(self._closing.set)
        self._result(self._catalog.close())
        wait([stream.done for stream in self._streams])
        self._end_loop()

    def translate(self, request: pb.TranslateRequest) -> pb.TranslateResponse:
        return self._result(self._servicer.translate(request))

    def translate_stream(
        self,
        segments: Iterable[pb.Segment],
        settings: pb.TranslateStreamSettings | None = None,
        *,
        max_unanswered: int = DEFAULT_MAX_UNANSWERED,
        timeout_seconds: float | None = None,
    ) -> Generator[tuple[str, pb.Translation | TranslationError], None, None]:
        """As `Client.translate_stream`."""
        check_unanswered(max_unanswered)

        def call(requests: Iterator[pb.TranslateStreamRequest]) -> LocalCall:
            run = self._servicer.translate_stream
            stream = LocalCall(self._loop, run, timeout_seconds, requests)
            self._streams.add(stream)
            return stream

        settings = settings or pb.TranslateStreamSettings()
        return outcomes(exchanged(call, settings, segments, max_unanswered))

    def score(self, request: pb.ScoreRequest) -> pb.ScoreResponse:
        return self._result(self._servicer.score(request))

    def list_models(self) -> pb.ListModelsResponse:
        return self._result(self._servicer.list_models())

    def _result(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()
