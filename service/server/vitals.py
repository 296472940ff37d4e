"""Asks the engines how they are, and tells health."""

import asyncio
import time
from collections.abc import Callable

from service.catalog import Catalog
from service.engine import Engine
from service.rpc import Health

_EVERY_SECONDS = 1.0
# An engine restarts what has died. One that hasn't come back by then won't, but a new process may.
PATIENCE_SECONDS = 60.0


class Vitals:
    """A model is ready while its engine works; the server is while it has some and all of them do.

    The process lives as long as no engine has been down for `PATIENCE_SECONDS` on end; that the
    event loop runs is shown by the answer.
    """

    def __init__(
        self, catalog: Catalog, health: Health, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._catalog = catalog
        self._health = health
        self._clock = clock
        self._down_since: dict[Engine, float] = {}
        catalog.subscribe(self.look)

    def look(self) -> None:
        """Tells health how things are now."""
        works = dict.fromkeys(self._catalog.names, False)
        served = self._catalog.router.models if self._catalog.is_loaded else []
        engines = [model.translator.engine for model in served]
        down = [engine for engine in engines if not engine.is_healthy]
        for model in served:
            works[model.name] = True
        for model in served:
            works[model.name] &= model.translator.engine not in down
        now = self._clock()
        self._down_since = {engine: self._down_since.get(engine, now) for engine in down}
        is_live = all(now - since < PATIENCE_SECONDS for since in self._down_since.values())
        self._health.update(works, is_ready=bool(served) and not down, is_live=is_live)

    async def watch(self) -> None:
        """Looks every second, for ever."""
        while True:
            self.look()
            await asyncio.sleep(_EVERY_SECONDS)
