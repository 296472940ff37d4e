"""The way out: a model that was replaced is closed when no request holds it any more."""

import asyncio
from collections.abc import Callable, Iterable

from service.catalog.memory import give_back
from service.catalog.served import ServedModel


class Retiring:
    """The models that get no more requests and aren't closed yet. For one event loop's thread.

    closed: called with each when it is closed; then nothing here refers to it, and its memory is
        given back.
    """

    def __init__(self, closed: Callable[[ServedModel], None]) -> None:
        self._closed = closed
        self._models: dict[asyncio.Task[None], ServedModel] = {}

    @property
    def models(self) -> list[ServedModel]:
        return list(self._models.values())

    def add(self, model: ServedModel) -> None:
        """Closes `model` once nobody holds it."""
        task = asyncio.create_task(self._retire(model))
        self._models[task] = model
        task.add_done_callback(self._forget)

    async def close(self) -> None:
        """Closes all now, whoever still holds them."""
        models, tasks = self.models, list(self._models)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await close_all(models)

    def _forget(self, task: asyncio.Task[None]) -> None:
        del self._models[task]
        asyncio.get_running_loop().run_in_executor(None, give_back)

    async def _retire(self, model: ServedModel) -> None:
        await model.holders.wait_until_none()
        await close_all([model])
        self._closed(model)


async def close_all(models: Iterable[ServedModel]) -> None:
    """Closes models side by side, in threads: each waits for a step to end."""
    await asyncio.gather(*(asyncio.to_thread(model.close) for model in models))
