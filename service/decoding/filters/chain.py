"""`Filters`: all filters of a batch, and the sentences that ask for any.

Two kinds of sentence do. Most choose among a few more candidates of the model than the search
takes: filters only ever lower a log-probability, so that candidates that stay as likely as the last
one are the best of all, and if too few do, the model is asked for more. Those that *need
everything* get the log-probabilities of the whole vocabulary.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.decoding.filters.bans import LeastLength, NoRepeatNgram, SuppressedSequences
from service.decoding.filters.base import Ban, Bans, Change, Columns, Filter, Past
from service.decoding.filters.changes import (
    Alternatives,
    HardPrefix,
    PrefixBias,
    RepetitionPenalty,
    SuppressedTokens,
)
from service.decoding.filters.columns import top_columns
from service.decoding.filters.sampling import Sampling
from service.decoding.model import StepOutput
from service.decoding.options import DecodingOptions
from service.decoding.search import Candidates
from service.decoding.slots import PerSlot

# Candidates beyond those that the search takes, at first: they cost next to nothing.
_NUM_MORE: Final = 4

More = Callable[[int], StepOutput]
_Kept = tuple[NDArray[np.float32], NDArray[np.int64]]


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Sentences of one kind in a step, what they said, and which filters they ask for.

    `rows` (sentences * beams,) are those of the whole batch; `past` counts its own.
    """

    sentences: NDArray[np.intp]
    rows: NDArray[np.intp]
    past: Past
    filters: frozenset[Filter]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Who is filtered in a step: those that choose among candidates, those that need everything."""

    choosing: Group | None = None
    seeing: Group | None = None

    @property
    def num_more(self) -> int:
        """Candidates to ask for beyond those that the search takes."""
        return _NUM_MORE if self.choosing else 0

    @property
    def needs_everything(self) -> bool:
        return self.seeing is not None


NOTHING: Final = Plan()


class Filters:
    """Owns what the sentences of a batch asked for and said; see `Past` for rows and slots."""

    def __init__(self, eos_id: int, beam_size: int) -> None:
        self._beam_size = beam_size
        self._width = 2 * beam_size if beam_size > 1 else 1
        self._history = PerSlot(np.int32, 2)
        alternatives = self._alternatives = Alternatives(eos_id)
        self._bans: Sequence[Ban] = (
            LeastLength(eos_id),
            SuppressedSequences(),
            NoRepeatNgram(),
            alternatives,
        )
        # In the order in which they apply; bans come between the two.
        self._before: Sequence[Change] = (PrefixBias(), RepetitionPenalty(), SuppressedTokens())
        self._after: Sequence[Change] = (alternatives, Sampling(), HardPrefix())
        everyone: dict[Filter, None] = dict.fromkeys((*self._bans, *self._before, *self._after))
        self._filters: Sequence[Filter] = tuple(everyone)
        self._asks = PerSlot(np.bool_, 1)  # (slot, filter)

    def join(self, slot: int, options: DecodingOptions, source_length: int) -> None:
        """A sentence that is filtered takes part from the next step on."""
        length = options.length_limit(source_length)
        self._history.reserve(slot, (self._beam_size, length))
        asks = [each.join(slot, options, source_length) for each in self._filters]
        self._asks.put(slot, asks)

    def plan(
        self,
        slots: NDArray[np.intp],
        positions: NDArray[np.int32],
        is_filtered: NDArray[np.bool_],
        needs_everything: NDArray[np.bool_],
    ) -> Plan:
        """What the next step needs; all arguments are (sentences,) of the whole batch."""
        if not is_filtered.any():
            return NOTHING
        choosing = self._group((is_filtered & ~needs_everything).nonzero()[0], slots, positions)
        return Plan(choosing, self._group(needs_everything.nonzero()[0], slots, positions))

    def apply(self, plan: Plan, output: StepOutput, more: More) -> StepOutput:
        """The model's output with the candidates that may follow, as many as without filters.

        `more` gives the same step's output with that many candidates.
        """
        if plan is NOTHING:
            return output
        chosen: _Kept | None = None
        if plan.choosing:
            chosen, output = self._chosen(plan.choosing, output, more)
        log_probs = output.log_probs[:, : self._width].copy()
        ids = output.ids[:, : self._width].copy()
        if plan.choosing and chosen:
            log_probs[plan.choosing.rows], ids[plan.choosing.rows] = chosen
        if plan.seeing:
            rows = plan.seeing.rows
            log_probs[rows], ids[rows] = self._seen(plan.seeing, output)
        return replace(output, log_probs=log_probs, ids=ids)

    def follow(self, plan: Plan, live: Candidates) -> None:
        """Every beam takes over what its parent said, and says its token."""
        for group in (plan.choosing, plan.seeing):
            if group:
                self._follow(group, live)

    def _group(
        self, sentences: NDArray[np.intp], slots: NDArray[np.intp], positions: NDArray[np.int32]
    ) -> Group | None:
        if not len(sentences):
            return None
        slots, positions = slots[sentences], positions[sentences]
        # At least one place, for filters to look at and ignore.
        said = self._history.rows[slots, :, : max(1, int(positions.max()))]
        past = Past(slots, positions, said.reshape(-1, said.shape[2]), self._beam_size)
        asked = np.flatnonzero(self._asks.rows[slots].any(axis=0)).tolist()
        rows = (sentences[:, None] * self._beam_size + np.arange(self._beam_size)).ravel()
        return Group(sentences, rows, past, frozenset(self._filters[which] for which in asked))

    def _chosen(self, group: Group, output: StepOutput, more: More) -> tuple[_Kept, StepOutput]:
        """The best that may follow among the candidates; with the output that holds enough."""
        bans = self._banned(group)
        while True:
            asked = output.ids.shape[1]
            raw, ids = output.log_probs[group.rows], output.ids[group.rows]
            columns = Columns(raw.copy(), raw, ids)
            self._lower(group, columns, bans)
            best = np.argsort(-columns.log_probs, axis=1, kind="stable")[:, : self._width]
            log_probs = np.take_along_axis(columns.log_probs, best, axis=1)
            # What isn't among the candidates is no likelier than the last of them. (NaN is enough.)
            if not (log_probs[:, -1] < raw[:, -1]).any():
                break
            output = more(2 * asked)
            if output.ids.shape[1] == asked:
                break
        if self._alternatives in group.filters:
            self._alternatives.change(group.past, Columns(log_probs, log_probs))
        return (log_probs, np.take_along_axis(ids, best, axis=1)), output

    def _seen(self, group: Group, output: StepOutput) -> _Kept:
        assert output.full_log_probs is not None
        raw = output.full_log_probs[group.rows]
        columns = Columns(raw.copy(), raw)
        self._lower(group, columns, self._banned(group))
        for each in self._after:
            if each in group.filters:
                each.change(group.past, columns)
        best = top_columns(columns.log_probs, min(self._width, raw.shape[1]))
        return np.take_along_axis(columns.log_probs, best, axis=1), best

    def _banned(self, group: Group) -> Sequence[Bans]:
        return [each.bans(group.past) for each in self._bans if each in group.filters]

    def _lower(self, group: Group, columns: Columns, bans: Sequence[Bans]) -> None:
        for each in self._before:
            if each in group.filters:
                each.change(group.past, columns)
        for ban in bans:
            columns.log_probs[columns.places(*ban)] = -np.inf

    def _follow(self, group: Group, live: Candidates) -> None:
        slots, positions = group.past.slots, group.past.positions
        tokens, parents = live.tokens[group.sentences], live.parents[group.sentences]
        if self._beam_size > 1:
            said = group.past.history.reshape(len(slots), self._beam_size, -1)
            said = np.take_along_axis(said, parents[:, :, None], axis=1)
            self._history.rows[slots, :, : said.shape[2]] = said
        self._history.rows[slots, :, positions] = tokens
