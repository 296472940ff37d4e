"""The sentence pairs on which section 3 of the chapter trains, as the three files of a corpus.

A subset of the Tatoeba corpus where it lies beside the repository, with more long sentences to be
scored on than its own test set has; else the pairs of `written.tsv`, which are trained and scored
on alike, to be learned by heart.
"""

import gzip
import zlib
from pathlib import Path

from training.data import Pair, read_pairs

WRITTEN = Path(__file__).with_name("written.tsv")
SPLITS = ("train", "valid", "test")
LONG_WORDS = 13
"""Of an English sentence: from here on the corpus has too few to test on, so some are held out."""


def write_sentences(corpus: Path | None, folder: Path) -> None:
    """Write the splits into the folder, from the corpus if there is one."""
    folder.mkdir(parents=True, exist_ok=True)
    if corpus is None:
        for split in SPLITS:
            _compress(WRITTEN.read_text(encoding="utf-8"), folder, split)
        return
    for split, pairs in zip(SPLITS, subset(corpus), strict=True):
        _compress("".join(f"{pair.source}\t{pair.target}\n" for pair in pairs), folder, split)


def subset(corpus: Path) -> tuple[list[Pair], list[Pair], list[Pair]]:
    """Half of the training pairs, a quarter of the validation pairs, and the test pairs.

    The other half of the long training pairs are tested on, and no French sentence of theirs is
    trained on. An English sentence is on one side with all its translations.
    """
    train, valid, test = (read_pairs(corpus / f"{split}.tsv.gz") for split in SPLITS)
    held_out = [pair for pair in train if is_long(pair.source) and _share(pair, of=2)]
    tested = {pair.target for pair in held_out}
    kept = (pair for pair in train if not _share(pair, of=2) and pair.target not in tested)
    return list(kept), [pair for pair in valid if _share(pair, of=4)], test + held_out


def is_long(source: str) -> bool:
    return len(source.split()) >= LONG_WORDS


def _share(pair: Pair, of: int) -> bool:
    """True for one in `of` sources, always the same."""
    return zlib.crc32(pair.source.encode()) % of == 0


def _compress(lines: str, folder: Path, split: str) -> None:
    (folder / f"{split}.tsv.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))
