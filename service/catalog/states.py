"""What there is to tell of the folders: how each stands, and what a look at them changed."""

from dataclasses import dataclass
from enum import Enum

from service.catalog.served import ServedModel


class State(Enum):
    """How a bundle stands."""

    LOADING = "LOADING"  # it is verified, loaded and warmed up
    SERVING = "SERVING"
    RETIRING = "RETIRING"  # it answers the requests that it has, and gets no more
    FAILED = "FAILED"  # it can't be served, until its files change
    UNLOADED = "UNLOADED"  # it was unloaded by hand, until its files change


@dataclass(frozen=True, slots=True)
class BundleStatus:
    """A bundle and how it stands; a folder has two while one replaces the other.

    name, version: "" where they couldn't be read. reason: of FAILED and UNLOADED.
    """

    folder: str
    name: str
    version: str
    state: State
    reason: str = ""

    @classmethod
    def of(cls, model: ServedModel, state: State, reason: str = "") -> "BundleStatus":
        """That of a model that is or was served."""
        return cls(model.folder, model.name, model.version, state, reason)


class Outcome(Enum):
    """What a look at a folder changed."""

    UNCHANGED = "UNCHANGED"
    LOADED = "LOADED"
    UNLOADED = "UNLOADED"
    FAILED = "FAILED"  # what was served before still is


@dataclass(frozen=True, slots=True)
class Change:
    """The outcome for one folder.

    name, version: of the bundle that was loaded, unloaded, failed, or is served as before; "" where
    they couldn't be read. reason: why it failed, or isn't served though nothing changed.
    """

    folder: str
    outcome: Outcome
    name: str = ""
    version: str = ""
    reason: str = ""

    def __str__(self) -> str:
        words = f"{self.folder}: {self.outcome.value} {self.name} {self.version}".rstrip()
        return words + f" ({self.reason})" * bool(self.reason)


@dataclass(frozen=True, slots=True)
class ReloadReport:
    """What a look at the models directory changed, by folder."""

    changes: tuple[Change, ...]

    def __str__(self) -> str:
        news = [change for change in self.changes if change.outcome is not Outcome.UNCHANGED]
        return "; ".join(map(str, news)) or "nothing has changed"

    def having(self, outcome: Outcome) -> list[Change]:
        """The folders with one outcome."""
        return [change for change in self.changes if change.outcome is outcome]
