"""`Catalog`: the models of a server, and how they come and go while it serves.

    look ──changed──> read ──> load, warm up ──┐               beside what serves, in a thread
      │                 └─fault─> FAILED       ├──> swap ──> retire ──last request──> closed
      └────gone───────────────────────────────>┘            (what isn't served any more)

What fails changes nothing: the version that served goes on serving. The router is a snapshot that
is never changed, only replaced; a request holds the models that it was routed to with `held`.
To be used on one event loop's thread.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType

from service.catalog.arrangement import by_age, make_router
from service.catalog.attempt import Attempt, check_enough, loaded, refuse_twins
from service.catalog.folders import Folder, Stamp, bundle_folders, look
from service.catalog.retiring import Retiring, close_all
from service.catalog.routing import Router
from service.catalog.served import ServedModel
from service.catalog.states import BundleStatus, Change, Outcome, ReloadReport, State
from service.catalog.telling import Teller
from service.config import ServerConfig
from service.errors import ConfigError, InvalidArgument, Unavailable
from service.metrics import Metrics

_LOG = logging.getLogger(__name__)
_UNLOADED = "unloaded by hand; it is loaded again when its files change"


class Catalog:
    """The bundles of `config.models`: `load` them once, then `reload` or `watch`, at last `close`.

    patience_seconds: a folder that is missing for so long is gone, and not just being replaced.
    """

    def __init__(
        self,
        config: ServerConfig,
        metrics: Metrics | None = None,
        *,
        patience_seconds: float = 1.0,
    ) -> None:
        self._config = config
        self._metrics = metrics
        self._directory = config.models
        self._tell = Teller(metrics)
        self._patience_seconds = patience_seconds
        self._listeners: list[Callable[[], None]] = []
        self._busy = asyncio.Lock()  # whoever changes what follows
        self._router: Router[ServedModel] | None = None
        self._attempts: Sequence[Attempt] = ()
        # By folder: what serves, and what was seen or found wrong the last time.
        self._models: dict[str, ServedModel] = {}
        self._stamps: dict[str, Stamp | None] = {}
        self._refused: dict[str, BundleStatus] = {}
        self._retiring = Retiring(self._tell.closed)

    @property
    def router(self) -> Router[ServedModel]:
        """What serves now. Raises Unavailable until the models are loaded."""
        if self._router is None:
            raise Unavailable("the server is loading its models; try again soon")
        return self._router

    @property
    def is_loaded(self) -> bool:
        """Whether there is a router."""
        return self._router is not None

    @property
    def is_loading(self) -> bool:
        """Whether threads may read or load bundles, which nothing can stop."""
        return self._busy.locked()

    @property
    def names(self) -> list[str]:
        """The names of the models that serve, or will once they are loaded."""
        coming = [attempt.bundle for attempt in self._attempts if attempt.bundle]
        names = [*(model.name for model in self._models.values())]
        return sorted({*names, *(bundle.manifest.name for bundle in coming)})

    @property
    def num_sentences(self) -> int:
        """Sentences that were accepted and have no answer yet, by whatever model."""
        models = [*self._models.values(), *self._retiring.models]
        return sum(model.translator.engine.num_accepted for model in models)

    def bundles(self) -> list[BundleStatus]:
        """Every bundle that serves, comes, goes, or can't be served, by folder."""
        statuses = [
            *(BundleStatus.of(model, State.SERVING) for model in self._models.values()),
            *(BundleStatus.of(model, State.RETIRING) for model in self._retiring.models),
            *(attempt.status for attempt in self._attempts),
            *self._refused.values(),
        ]
        return sorted(statuses, key=lambda status: status.folder)

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Calls `listener`, on the event loop, whenever `names` or `router` may have changed."""
        self._listeners.append(listener)

    async def load(self) -> None:
        """Reads and verifies every bundle, then loads and warms up all that can be, then serves.

        What can't be served is told, and tried again once its files have changed, as by `reload`.
        Raises ConfigError and BundleError, with the faults of all bundles, if there is nothing to
        serve, or not the configured default model; before anything is loaded, if that is known.
        """
        async with self._busy:
            folders = await asyncio.to_thread(look, self._directory)
            self._attempts = [Attempt(folder) for folder in folders]
            try:
                await self._read()
                self._check_enough()
                self._notify()
                await self._load()
                refuse_twins(self._attempts, {})
                self._check_enough()
                self._swap(loaded(self._attempts), ())
                self._settle(folders)
            finally:
                await self._end_attempts()

    async def reload(self) -> ReloadReport:
        """Looks at the directory and serves what is there now: the new, the changed, the rest.

        A bundle that can't be served is reported, and tried again once its files have changed.
        Raises ConfigError, having changed nothing, if there is no bundle at all.
        """
        async with self._busy:
            try:
                folders = await asyncio.to_thread(look, self._directory)
            except ConfigError:
                self._tell.fault(num_folders=len(self._models))
                raise
            self._attempts = [Attempt(folder) for folder in folders if self._is_news(folder)]
            try:
                await self._read()
                self._notify()
                await self._load()
                gone = await self._gone(folders)
                refuse_twins(self._attempts, self._without(gone))
                kept = self._replace(gone)
                self._tell.kept(kept)
                return self._settle(folders, gone, kept)
            finally:
                await self._end_attempts()

    async def unload(self, name: str, version: str = "") -> BundleStatus:
        """Serves a model no more until its files change; an empty version is the only one.

        Raises UnknownModel, InvalidArgument if there are versions to choose from, and ConfigError
        if nothing would be left, or not the configured default.
        """
        async with self._busy:
            model = self.router.choose(name, version=version)
            versions = [each.version for each in self.router.models if each.name == name]
            if not name or (not version and len(versions) > 1):
                served = ", ".join(f"{each.name} {each.version}" for each in self.router.models)
                raise InvalidArgument(f"name a model and one of its versions: {served}")
            self._swap({}, (model.folder,))
            self._tell.unloaded()
            self._notify()
            status = BundleStatus.of(model, State.UNLOADED, _UNLOADED)
            self._refused[model.folder] = status
            return status

    async def watch(self) -> None:
        """Reloads every `watch_seconds` until it is cancelled; returns at once if that is never."""
        while seconds := self._config.watch_seconds:
            await asyncio.sleep(seconds)
            try:
                await self.reload()
            except ConfigError as error:
                _LOG.warning("what was loaded goes on serving: %s", error)
            except Exception:
                _LOG.exception("the models directory could not be looked at")

    async def close(self) -> None:
        """Ends every model now, whoever still holds it."""
        await self._retiring.close()
        await close_all(self._models.values())

    def _is_news(self, folder: Folder) -> bool:
        return folder.stamp is None or folder.stamp != self._stamps.get(folder.name)

    async def _read(self) -> None:
        for attempt in self._attempts:
            await attempt.read()

    def _check_enough(self) -> None:
        check_enough(self._directory, self._attempts, self._config.default_model)

    async def _load(self) -> None:
        """Loads what was read, unless it is what its folder serves already."""
        for attempt in self._attempts:
            served = self._models.get(attempt.folder.name)
            if attempt.bundle and not (served and served.manifest == attempt.bundle.manifest):
                await attempt.load(self._config, self._metrics)

    async def _gone(self, folders: Sequence[Folder]) -> dict[str, ServedModel]:
        """The models whose folders aren't there, nor after a while."""
        here = {folder.name for folder in folders}
        if self._models.keys() - here:
            await asyncio.sleep(self._patience_seconds)
            here |= {path.name for path in await asyncio.to_thread(bundle_folders, self._directory)}
        return {folder: model for folder, model in self._models.items() if folder not in here}

    def _replace(self, gone: Collection[str]) -> dict[str, str]:
        """Swaps as much as can be; returns the folders whose models must stay, and why."""
        added = loaded(self._attempts)
        try:
            self._swap(added, gone)
            return {}
        except ConfigError as error:
            kept = dict.fromkeys(gone, "; ".join(error.faults))
        try:
            self._swap(added, ())
        except ConfigError as error:
            for attempt in self._attempts:
                attempt.error = attempt.error or error
        return kept

    def _swap(self, added: Mapping[str, ServedModel], removed: Collection[str]) -> None:
        """Serves `added` instead of what their folders served; raises ConfigError or changes all.

        The rest of the service sees one moment: nothing here waits.
        """
        models = self._without(removed) | dict(added)
        if models == self._models:
            return
        if not models:
            raise ConfigError("models", ["nothing would be left to serve"])
        router = make_router(by_age(models), self._config.default_model)
        retired = [each for folder, each in self._models.items() if models.get(folder) is not each]
        if self._router:
            self._tell.default(self._router.default, router.default)
        self._models, self._router = models, router
        for model in retired:
            self._tell.retires(model)
            self._retiring.add(model)

    def _settle(
        self,
        folders: Sequence[Folder],
        gone: Mapping[str, ServedModel] = MappingProxyType({}),
        kept: Mapping[str, str] = MappingProxyType({}),
    ) -> ReloadReport:
        """Notes what was seen, and tells what became of it: of `gone`, all but `kept` went."""
        attempts = {attempt.folder.name: attempt for attempt in self._attempts}
        self._stamps = {folder.name: folder.stamp for folder in folders}
        known = self._stamps.keys() - attempts.keys()
        self._refused = {name: each for name, each in self._refused.items() if name in known}
        for attempt in self._attempts:
            if attempt.error:
                self._refused[attempt.folder.name] = attempt.status
        changes = [self._change(folder.name, attempts.get(folder.name)) for folder in folders]
        changes += [_departure(model, kept.get(folder, "")) for folder, model in gone.items()]
        self._tell.outcomes(changes, attempts)
        failed = [each for each in self._refused.values() if each.state is State.FAILED]
        self._tell.standing_faults(len(failed) + len(kept))
        return ReloadReport(tuple(changes))

    def _change(self, folder: str, attempt: Attempt | None) -> Change:
        if status := self._refused.get(folder):
            outcome = Outcome.FAILED if status.state is State.FAILED else Outcome.UNCHANGED
            return Change(folder, outcome, status.name, status.version, status.reason)
        model = self._models[folder]
        outcome = Outcome.LOADED if attempt and attempt.model else Outcome.UNCHANGED
        return Change(folder, outcome, model.name, model.version)

    async def _end_attempts(self) -> None:
        """Closes what was loaded and must not serve."""
        serving = self._models.values()
        loaded = [attempt.model for attempt in self._attempts if attempt.model]
        self._attempts = ()
        self._notify()
        await close_all(model for model in loaded if model not in serving)

    def _without(self, folders: Collection[str]) -> dict[str, ServedModel]:
        return {folder: model for folder, model in self._models.items() if folder not in folders}

    def _notify(self) -> None:
        for listener in self._listeners:
            listener()


def _departure(model: ServedModel, reason: str) -> Change:
    """What became of a model whose folder is gone; reason: why it must serve on."""
    outcome = Outcome.UNCHANGED if reason else Outcome.UNLOADED
    return Change(model.folder, outcome, model.name, model.version, reason)
