"""The lists of words that CTranslate2 may choose from, made from those that ours are drawn from."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from service.bundle import Lexicon

VOCABULARY_MAP: Final = "vmap.txt"
"""The file in a model's directory."""


def save_vocabulary_map(lexicon: Lexicon, pieces: Sequence[str], directory: Path) -> None:
    """Let a model that was saved there choose from the lists that our shortlists are drawn from.

    CTranslate2 takes one list for a whole batch: what is common, and what any piece of any of its
    sentences may become.
    """
    lines = ["\t" + " ".join(pieces[index] for index in lexicon.common)]
    for source, (start, end) in enumerate(zip(lexicon.offsets, lexicon.offsets[1:], strict=False)):
        if end > start:
            words = " ".join(pieces[index] for index in lexicon.words[start:end])
            lines.append(f"{pieces[source]}\t{words}")
    (directory / VOCABULARY_MAP).write_text("\n".join(lines) + "\n", encoding="utf-8")
