"""`--shard I/N`: the share of a file that one of N processes translates.

Shares are spans of bytes of the text, about as long as each other, that end where lines end: the
outputs one after another are the output of the whole file.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from service.client.bulk.codecs import is_compressed


@dataclass(frozen=True, slots=True)
class Shard:
    """Number `index`, from 0, of `count` shares."""

    index: int = 0
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> "Shard":
        """From `I/N`. Raises ValueError, which says what is wrong."""
        found = re.fullmatch(r"(\d+)/(\d+)", text)
        if not found:
            raise ValueError(f"{text!r} is not I/N, as 0/4 is the first of four")
        index, count = map(int, found.groups())
        if index >= count:
            raise ValueError(f"{text!r}: the shares of {count} are 0 to {count - 1}")
        return cls(index, count)

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    def span(self, size: int) -> tuple[int, int]:
        """The lines that begin at an offset of this range are the share's, in `size` bytes."""
        return size * self.index // self.count, size * (self.index + 1) // self.count

    def named(self, name: str) -> str:
        """A file's name with the share in it, so that names in order are shares in order.

        `corpus.txt.gz` is `corpus.02-of-12.txt.gz`, and stays what it is where there is one share.
        """
        if self.count == 1:
            return name
        path, suffix = Path(name), ""
        if is_compressed(path):
            path, suffix = path.with_suffix(""), path.suffix
        index = str(self.index).zfill(len(str(self.count)))
        return f"{path.stem}.{index}-of-{self.count}{path.suffix}{suffix}"
