"""The sentences to translate, with references where there are any."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from training.evaluate import load_eval_set

ROOT = Path(__file__).parent.parent
TATOEBA_TEST = ROOT.parent / "shared" / "data" / "tatoeba-eng-fra" / "test.tsv.gz"
OWN_SENTENCES = Path(__file__).with_name("sentences.txt")


@dataclass(frozen=True, slots=True)
class Corpus:
    """Distinct sources; `references` are None, or those of each source."""

    name: str
    sources: Sequence[str]
    references: Sequence[Sequence[str]] | None = None

    def head(self, count: int) -> "Corpus":
        """The first sentences of it."""
        references = self.references[:count] if self.references else None
        return Corpus(self.name, self.sources[:count], references)


def load_corpus(path: Path | None = None) -> Corpus:
    """The sentences of a file: pairs in a `.tsv.gz`, else one sentence a line.

    Without a file the Tatoeba test set where it lies beside the repository, else our own.
    Raises OSError and ValueError for a file that can't be read or is empty.
    """
    if path is None:
        path = TATOEBA_TEST if TATOEBA_TEST.exists() else OWN_SENTENCES
    if path.name.endswith(".tsv.gz"):
        return Corpus(path.name, *load_eval_set(path))
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    sources = list(dict.fromkeys(filter(None, lines)))
    if not sources:
        raise ValueError(f"{path} has no sentences")
    return Corpus(path.name, sources)
