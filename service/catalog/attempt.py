"""One folder on its way to being served: read and verified, loaded and warmed up, or refused."""

import asyncio
import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from service.bundle import Bundle, read_bundle
from service.catalog.arrangement import twins
from service.catalog.folders import Folder
from service.catalog.loading import load_model
from service.catalog.served import ServedModel
from service.catalog.states import BundleStatus, State
from service.config import ServerConfig
from service.errors import BundleError, ConfigError, StartupError
from service.metrics import Metrics

_LOG = logging.getLogger(__name__)


class Attempt:
    """Ends with a `model`, an `error`, or a `bundle` alone, where nobody called `load`."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.bundle: Bundle | None = None
        self.model: ServedModel | None = None
        self.error: StartupError | None = None
        self.seconds = 0.0

    async def read(self) -> None:
        """Reads and verifies the bundle, in a thread."""
        with self._failing():
            self.bundle = await asyncio.to_thread(read_bundle, self.folder.path)

    async def load(self, config: ServerConfig, metrics: Metrics | None) -> None:
        """Loads and warms up what was read, in a thread, unless it changes meanwhile."""
        assert self.bundle
        with self._failing():
            self.model = await asyncio.to_thread(load_model, self.bundle, config, metrics)
            # Its files were opened one after the other: they may be of two bundles.
            if (await asyncio.to_thread(Folder.at, self.folder.path)).stamp != self.folder.stamp:
                fault = "its files changed while they were read; it is tried again"
                raise BundleError(str(self.folder.path), [fault])

    @property
    def status(self) -> BundleStatus:
        """How it stands: LOADING, or FAILED with the reason."""
        manifest = self.bundle.manifest if self.bundle else None
        name, version = (manifest.name, manifest.version) if manifest else ("", "")
        if self.error is None:
            return BundleStatus(self.folder.name, name, version, State.LOADING)
        return BundleStatus(self.folder.name, name, version, State.FAILED, self._reason(self.error))

    def _reason(self, error: StartupError) -> str:
        subject = "" if error.subject == str(self.folder.path) else f"{error.subject}: "
        return subject + "; ".join(error.faults)

    @contextmanager
    def _failing(self) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        except StartupError as error:
            self.error = error
        except Exception as error:
            _LOG.exception("%s can't be served", self.folder.path)
            self.error = BundleError(str(self.folder.path), [repr(error)])
        finally:
            self.seconds += time.perf_counter() - started


def loaded(attempts: Iterable[Attempt]) -> dict[str, ServedModel]:
    """The models that may serve, by folder."""
    return {
        attempt.folder.name: attempt.model
        for attempt in attempts
        if attempt.model and not attempt.error
    }


def refuse_twins(attempts: Sequence[Attempt], served: Mapping[str, ServedModel]) -> None:
    """Fails those that would be the same version as what another folder serves, or will."""
    losers = twins(served, loaded(attempts))
    for attempt in attempts:
        if other := losers.get(attempt.folder.name):
            fault = f"folder {other} has the same version of the same model; keep one of them"
            attempt.error = BundleError(str(attempt.folder.path), [fault])


def check_enough(directory: Path, attempts: Iterable[Attempt], default_model: str) -> None:
    """Raises the faults of all attempts as one if the rest is nothing, or lacks the default model.

    To be asked before anything is loaded, and again when that is done.
    """
    attempts = list(attempts)
    names = {each.bundle.manifest.name for each in attempts if each.bundle and not each.error}
    failed = [(f"{each.folder.name}: ", each.error) for each in attempts if each.error]
    if names and default_model not in {"", *names}:
        fault = f"default model {default_model!r} is not served; served: {', '.join(sorted(names))}"
        failed.insert(0, ("", ConfigError("models", [fault])))
    elif names:
        return
    errors = [error for _, error in failed]
    if len({str(error) for error in errors}) == 1:
        raise errors[0]
    is_config = all(isinstance(error, ConfigError) for error in errors)
    kind = ConfigError if is_config else BundleError
    raise kind(str(directory), [prefix + fault for prefix, e in failed for fault in e.faults])
