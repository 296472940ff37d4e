"""What the catalog tells the log and the metrics."""

import logging
from collections.abc import Iterable, Mapping

from service.catalog.attempt import Attempt
from service.catalog.served import ServedModel
from service.catalog.states import Change, Outcome
from service.metrics import Metrics
from service.metrics.metrics import ReloadOutcome

_LOG = logging.getLogger(__name__)


class Teller:
    """Says each event once in the log and, where there are metrics, in these."""

    def __init__(self, metrics: Metrics | None) -> None:
        self._metrics = metrics

    def outcomes(self, changes: Iterable[Change], attempts: Mapping[str, Attempt]) -> None:
        """What a look at the directory changed; `attempts` were made at folders with news."""
        for change in changes:
            attempt = attempts.get(change.folder)
            if attempt and attempt.model and change.outcome is Outcome.LOADED:
                self._serves(attempt.model, attempt.seconds)
            elif attempt and change.outcome is Outcome.FAILED:
                _LOG.error("%s can't be served: %s", attempt.folder.path, change.reason)
                self._count("failed")
            elif change.outcome is Outcome.UNLOADED:
                self._count("unloaded")
            else:
                self._count("unchanged")

    def retires(self, model: ServedModel) -> None:
        """A model gets no more requests."""
        _LOG.info("%s %s from %s gets no more requests", *_named(model))
        if self._metrics:
            self._metrics.forget_model(model.name, model.version)

    def closed(self, model: ServedModel) -> None:
        """The last request of a model that retired has ended."""
        _LOG.info("%s %s from %s is closed", *_named(model))

    def unloaded(self) -> None:
        """A model was taken out by hand."""
        self._count("unloaded")

    def kept(self, folders: Mapping[str, str]) -> None:
        """Folders are gone, but their models must stay, for the reasons given."""
        for folder, reason in folders.items():
            _LOG.warning("%s is gone, but its model goes on serving: %s", folder, reason)

    def fault(self, num_folders: int) -> None:
        """The directory has no bundle at all; so many folders are gone from it."""
        self._count("failed")
        self.standing_faults(num_folders)

    def standing_faults(self, num_folders: int) -> None:
        """So many folders can't be served as they are, or are gone though they are needed."""
        if self._metrics:
            self._metrics.failed_bundles.set(num_folders)

    def default(self, former: str, now: str) -> None:
        """Which model answers requests that name none; "" is nobody."""
        if now and now != former:
            _LOG.warning("%s answers requests that name no model and no language", now)
        elif former and not now:
            text = "requests that name no model and no language are refused: none is the default"
            _LOG.warning("%s; --default-model makes one", text)

    def _serves(self, model: ServedModel, seconds: float) -> None:
        text = "%s %s from %s serves, %s on %s, loaded in %.1f s"
        running = model.precision, model.device
        _LOG.info(text, *_named(model), *running, seconds)
        self._count("loaded")
        if self._metrics:
            self._metrics.load_seconds(model.name, seconds)
            architecture = model.manifest.architecture
            self._metrics.describe_model(
                model.name, model.version, model.languages, architecture, *running
            )

    def _count(self, outcome: ReloadOutcome) -> None:
        if self._metrics:
            self._metrics.reload(outcome)


def _named(model: ServedModel) -> tuple[str, str, str]:
    return model.name, model.version, model.folder
