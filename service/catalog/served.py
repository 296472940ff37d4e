"""`ServedModel`: a bundle that is loaded and answers, and who still needs it."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from service.bundle import Manifest
from service.translator import Translator


class Holders:
    """Counts the requests that need a model. To be used on one event loop's thread."""

    def __init__(self) -> None:
        self._count = 0
        self._left = asyncio.Event()

    def enter(self) -> None:
        self._count += 1

    def leave(self) -> None:
        self._count -= 1
        if self._count == 0:
            self._left.set()

    async def wait_until_none(self) -> None:
        """Returns once every holder has left."""
        while self._count:
            self._left.clear()
            await self._left.wait()


@dataclass(frozen=True, slots=True, eq=False)
class ServedModel:
    """A bundle that is served: its translator and how it runs here.

    folder: its name in the models directory. unwatch: ends the metrics that read the engine.
    """

    translator: Translator
    precision: str
    device: str
    folder: str
    unwatch: Callable[[], None] = lambda: None
    holders: Holders = field(default_factory=Holders)

    @property
    def manifest(self) -> Manifest:
        return self.translator.manifest

    @property
    def name(self) -> str:
        return self.manifest.name

    @property
    def version(self) -> str:
        return self.manifest.version

    @property
    def languages(self) -> tuple[str, str]:
        return self.manifest.languages

    def close(self) -> None:
        """Ends the engine's threads; what is in flight fails with Unavailable. Blocks shortly."""
        self.unwatch()
        self.translator.engine.close()


@contextmanager
def held(models: Iterable[ServedModel]) -> Iterator[None]:
    """A lease: none of these models is closed inside of the block because it was replaced."""
    models = tuple(models)
    for model in models:
        model.holders.enter()
    try:
        yield
    finally:
        for model in models:
            model.holders.leave()
