"""What is wrong with a checkpoint."""

from collections.abc import Iterable
from pathlib import Path


class MarianError(ValueError):
    """A folder that can't be imported; `faults` lists why."""

    def __init__(self, directory: Path, faults: Iterable[str]) -> None:
        self.faults = tuple(faults)
        super().__init__(f"{directory}: {'; '.join(self.faults)}")
