"""What a run of the measurements is given."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.corpus import Corpus
from service.bundle import Bundle, read_bundle
from service.decoding import DecodingOptions, Stopping
from service.errors import ConfigError

MAX_LENGTH = 100
"""Target tokens at most, in both systems of a comparison."""


@dataclass(frozen=True)
class Settings:
    """What to measure with, and how long.

    models      directory of bundles
    results     directory of what is found, in files that begin with `name`
    rounds      of every comparison
    seconds     of every load on a server
    minutes     of the soak
    max_size    the most rows and the longest source of the growth
    """

    models: Path
    corpus: Corpus
    results: Path = Path(__file__).with_name("results")
    name: str = "latest"
    rounds: int = 7
    seconds: float = 8.0
    minutes: float = 30.0
    max_size: int = 256

    @property
    def is_quick(self) -> bool:
        """Too small to be a measurement: only to see that everything works."""
        return self.rounds < 3

    def plain(self) -> dict[str, Any]:
        """For the file of results."""
        return {
            "models": [str(path.name) for path in sorted(self.models.glob("*/"))],
            "corpus": self.corpus.name,
            "sentences": len(self.corpus.sources),
            "rounds": self.rounds,
            "seconds": self.seconds,
        }

    def bundle(self, architecture: str) -> Bundle:
        """The first bundle of that architecture that translates from English.

        Raises ConfigError if there is none.
        """
        for path in sorted(self.models.glob("*/bundle.json")):
            bundle = read_bundle(path.parent)
            manifest = bundle.manifest
            if (manifest.architecture, manifest.source_language) == (architecture, "en"):
                return bundle
        raise ConfigError("models", [f"{self.models} has no {architecture} from English"])


def comparable(
    beam_size: int, *, attention: bool = False, max_length: int = MAX_LENGTH
) -> DecodingOptions:
    """A search that means the same to ctranslate2: its stopping rule, and no limit by ratio."""
    return DecodingOptions(
        beam_size=beam_size,
        max_length=max_length,
        max_length_ratio=0,
        stopping=Stopping.FINISHED,
        attention=attention,
    )


def served_precision(bundle: Bundle) -> str:
    """int8, the precision that is compared, or what the bundle has instead."""
    precisions = bundle.manifest.precisions
    return "int8" if "int8" in precisions else precisions[0]
