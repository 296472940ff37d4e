"""Who is filtered in a step, and by what."""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.decoding.filters.base import Change, Past

Index = NDArray[np.intp] | slice


class Asked(NamedTuple):
    """The filters that some sentences ask for, in the order in which they apply.

    changes: those that choose among candidates. prefixed: those that see the whole vocabulary.
    """

    changes: tuple[Change, ...]
    prefixed: tuple[Change, ...]
    alternatives: bool
    sampling: bool
    hard_prefix: bool

    @property
    def num_more(self) -> int:
        return sum(each.num_more for each in self.changes)

    @property
    def reads_history(self) -> bool:
        return any(each.reads_history for each in self.prefixed)


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Sentences of one kind in a step, what they said, and which filters they ask for.

    sentences, rows (sentences * beams,): where they are in the whole batch; `past` counts its own.
    width: candidates that are to be left of each row.
    """

    sentences: Index
    rows: Index
    past: Past
    asked: Asked
    width: int

    @property
    def is_everyone(self) -> bool:
        return isinstance(self.rows, slice)


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Who is filtered in a step: those that choose among candidates, those that see everything.

    num_more: candidates to ask for beyond those that the search takes.
    """

    choosing: Group | None = None
    seeing: Group | None = None
    num_more: int = 0

    @property
    def needs_everything(self) -> bool:
        return self.seeing is not None


NOTHING: Final = Plan()
