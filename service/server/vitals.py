"""Asks the engines how they are, and tells health."""

import asyncio
import math
import time
from collections.abc import Callable

from service.catalog import Catalog
from service.rpc import Health

_EVERY_SECONDS = 1.0
# An engine restarts what has died. If none has come back by then none will, but a new process may.
PATIENCE_SECONDS = 60.0


class Vitals:
    """A model is ready while its engines work; the server is while any of its models can answer.

    One broken model must not take the others away from their callers: what breaks it here mostly
    breaks it on every server. For the same reason the process lives until nothing has worked for
    `PATIENCE_SECONDS` on end; that the event loop runs is shown by the answer.
    """

    def __init__(
        self, catalog: Catalog, health: Health, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._catalog = catalog
        self._health = health
        self._clock = clock
        self._down_since = math.inf
        catalog.subscribe(self.look)

    def look(self) -> None:
        """Tells health how things are now."""
        works = dict.fromkeys(self._catalog.names, False)
        served = self._catalog.router.models if self._catalog.is_loaded else []
        healthy = {model: model.translator.engine.is_healthy for model in served}
        for model in served:
            works[model.name] = all(healthy[each] for each in served if each.name == model.name)
        is_down = bool(served) and not any(healthy.values())
        self._down_since = min(self._down_since, self._clock()) if is_down else math.inf
        is_live = self._clock() - self._down_since < PATIENCE_SECONDS
        self._health.update(works, is_ready=any(healthy.values()), is_live=is_live)

    async def watch(self) -> None:
        """Looks every second, for ever."""
        while True:
            self.look()
            await asyncio.sleep(_EVERY_SECONDS)
