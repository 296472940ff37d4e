"""`Filters`: all filters of a batch, and the sentences that ask for any.

Two kinds of sentence do. Most choose among a few more candidates of the model than the search
takes: filters only ever lower a log-probability, so that candidates that stay as likely as the last
one are the best of all, and if too few do, the model is asked for more. Those that are in their
prefix, or draw from the whole vocabulary, see all of it.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from service.decoding.filters.bans import (
    LeastLength,
    NoRepeatNgram,
    SuppressedSequences,
    SuppressedTokens,
)
from service.decoding.filters.base import NO_TOKEN, Change, Columns, Filter, Past
from service.decoding.filters.changes import (
    Alternatives,
    Fixed,
    HardPrefix,
    PrefixBias,
    RepetitionPenalty,
)
from service.decoding.filters.columns import best_of, top_columns
from service.decoding.filters.plan import NOTHING, Asked, Group, Index, Plan
from service.decoding.filters.sampling import MAX_CANDIDATES, Sampling
from service.decoding.model import StepOutput
from service.decoding.options import DecodingOptions
from service.decoding.search import Candidates
from service.decoding.slots import PerSlot

_FOREVER: Final = np.iinfo(np.int64).max

More = Callable[[int], StepOutput]
_Kept = tuple[NDArray[np.float32], NDArray[np.int64]]


class Filters:
    """Owns what the sentences of a batch asked for and said; see `Past` for rows and slots."""

    def __init__(self, eos_id: int, beam_size: int) -> None:
        self._beam_size = beam_size
        self._width = 2 * beam_size if beam_size > 1 else 1
        self._history = PerSlot(np.int32, 2, fill=NO_TOKEN)
        self._bias, self._prefix = PrefixBias(), HardPrefix()
        self._sampling, self._alternatives = Sampling(), Alternatives(eos_id)
        self._changes: Sequence[Change] = (  # in the order in which they apply
            RepetitionPenalty(),
            SuppressedTokens(),
            LeastLength(eos_id),
            SuppressedSequences(),
            NoRepeatNgram(),
            self._alternatives,
        )
        self._filters: Sequence[Filter] = (
            *self._changes,
            self._bias,
            self._prefix,
            self._sampling,
        )
        self._num_slots = 0
        self._asks = PerSlot(np.int64)  # (slot,) bit i: the sentence asks for filter i
        self._sees_until = PerSlot(np.int64)  # the position from which it chooses among candidates
        self._asked_of: dict[int, Asked] = {}

    def join(self, slot: int, options: DecodingOptions, source_length: int) -> None:
        """A sentence that is filtered takes part from the next step on."""
        self._reserve(slot)
        asks = sum(each.asks(options) << bit for bit, each in enumerate(self._filters))
        # Those of the sentence that had the slot before are told that it is no longer there.
        told = asks | int(self._asks.rows[slot])
        self._asks.rows[slot] = told  # if one of them fails, the slot's next sentence tells all
        for each in self._filters_of(told):
            each.join(slot, options, source_length)
        self._asks.rows[slot] = asks
        self._sees_until.rows[slot] = _sees_until(options)
        self._history.reserve(slot, (self._beam_size, options.length_limit(source_length)))
        self._history.rows[slot] = NO_TOKEN

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
        choosing, seeing = is_filtered, needs_everything
        if seeing.any():
            # The slot of who isn't filtered may be beyond the table: any other does for them.
            known = np.where(seeing, slots, 0)
            seeing = seeing & (positions < self._sees_until.rows[known])
            choosing = is_filtered & ~seeing
        group = self._group(choosing, slots, positions)
        num_more = group.asked.num_more + group.width - self._width if group else 0
        return Plan(group, self._group(seeing, slots, positions), num_more)

    def apply(self, plan: Plan, output: StepOutput, more: More) -> StepOutput:
        """The model's output with the candidates that may follow, as many as without filters.

        `more` gives the same step's output with that many candidates.
        """
        if plan is NOTHING:
            return output
        found = list[tuple[Group, _Kept]]()
        if plan.choosing:
            chosen, output = self._chosen(plan.choosing, output, more)
            found.append((plan.choosing, chosen))
        if plan.seeing:
            found.append((plan.seeing, self._seen(plan.seeing, output)))
        if found[0][0].is_everyone:
            return StepOutput(*found[0][1])
        log_probs = output.log_probs[:, : self._width].copy()
        ids = output.ids[:, : self._width].copy()
        for group, kept in found:
            log_probs[group.rows], ids[group.rows] = kept
        return StepOutput(log_probs, ids)

    def follow(self, plan: Plan, live: Candidates) -> None:
        """Every beam takes over what its parent said, and says its token."""
        for group in (plan.choosing, plan.seeing):
            if group and group.asked.reads_history:
                self._follow(group, live)

    def _reserve(self, slot: int) -> None:
        if slot < self._num_slots:
            return
        self._num_slots = max(slot + 1, 2 * self._num_slots)
        for each in self._filters:
            each.reserve(self._num_slots)
        for table in (self._asks, self._sees_until):
            table.reserve(self._num_slots - 1, ())

    def _filters_of(self, asks: int) -> list[Filter]:
        return [each for bit, each in enumerate(self._filters) if asks >> bit & 1]

    def _asked(self, asks: int) -> Asked:
        if asks not in self._asked_of:
            found = self._filters_of(asks)
            changes = tuple(each for each in self._changes if each in found)
            self._asked_of[asks] = Asked(
                changes=changes,
                # A biased prefix raises a token, before others may lower it.
                prefixed=(self._bias, *changes) if self._bias in found else changes,
                alternatives=self._alternatives in found,
                sampling=self._sampling in found,
                hard_prefix=self._prefix in found,
            )
        return self._asked_of[asks]

    def _group(
        self, which: NDArray[np.bool_], slots: NDArray[np.intp], positions: NDArray[np.int32]
    ) -> Group | None:
        count = np.count_nonzero(which)
        if not count:
            return None
        sentences: Index = slice(None)
        rows: Index = slice(None)
        if count < len(which):
            sentences = which.nonzero()[0]
            rows = (sentences[:, None] * self._beam_size + np.arange(self._beam_size)).ravel()
        past = Past(slots[sentences], positions[sentences], self._history, self._beam_size)
        asked = self._asked(int(np.bitwise_or.reduce(self._asks[past.slots])))
        width = self._width
        if asked.sampling:
            width = min(MAX_CANDIDATES, self._sampling.num_candidates(past))
        return Group(sentences, rows, past, asked, width)

    def _chosen(self, group: Group, output: StepOutput, more: More) -> tuple[_Kept, StepOutput]:
        """The best that may follow among the candidates; with the output that holds enough."""
        while True:
            asked = output.ids.shape[1]
            columns = Columns(output.log_probs[group.rows], output.ids[group.rows])
            kept = self._kept(group, columns)
            # What isn't among the candidates is no likelier than the last of them. (NaN is enough.)
            if not (kept[0][:, -1] < columns.raw[:, -1]).any():
                break
            output = more(2 * asked)
            if output.ids.shape[1] == asked:
                break
        return self._settled(group, kept), output

    def _kept(self, group: Group, columns: Columns) -> _Kept:
        assert columns.ids is not None
        for each in group.asked.changes:
            each.change(group.past, columns)
        if not columns.is_changed:
            return columns.raw[:, : group.width], columns.ids[:, : group.width]
        return best_of(columns.log_probs, columns.ids, group.width)

    def _settled(self, group: Group, kept: _Kept) -> _Kept:
        log_probs, ids = kept
        if group.asked.alternatives:
            log_probs = log_probs.copy()
            self._alternatives.settle(group.past, log_probs)
        if group.asked.sampling:
            drawn = self._sampling.among(group.past, log_probs)
            every = np.arange(len(drawn))
            return log_probs[every, drawn][:, None], ids[every, drawn][:, None]
        return log_probs, ids

    def _seen(self, group: Group, output: StepOutput) -> _Kept:
        """The best that may follow of the whole vocabulary."""
        assert output.full_log_probs is not None
        columns = Columns(output.full_log_probs[group.rows])
        for each in group.asked.prefixed:
            each.change(group.past, columns)
        log_probs = output.log_probs[group.rows, : self._width].copy()
        ids = output.ids[group.rows, : self._width].copy()
        fixed = [*self._fixed(group, columns)]
        # The model's own candidates do, unless a filter changed any and somebody has a choice.
        if columns.is_changed and all(len(each.rows) < len(ids) for each in fixed):
            ids = top_columns(columns.log_probs, ids.shape[1])
            log_probs = np.take_along_axis(columns.log_probs, ids, axis=1)
        for rows in fixed:
            _fix(log_probs, ids, rows)
        return log_probs, ids

    def _fixed(self, group: Group, columns: Columns) -> Iterator[Fixed]:
        """What goes on with one token alone; what comes later overrules."""
        if group.asked.sampling:
            yield self._sampling.fixed(group.past, columns)
        if group.asked.hard_prefix:
            yield self._prefix.fixed(group.past, columns)

    def _follow(self, group: Group, live: Candidates) -> None:
        slots, positions = group.past.slots, group.past.positions
        tokens, parents = live.tokens[group.sentences], live.parents[group.sentences]
        if self._beam_size > 1:
            said = group.past.said
            beams = parents + self._beam_size * np.arange(len(slots))[:, None]
            self._history.rows[slots, :, : said.shape[1]] = said[beams]
        self._history.rows[slots, :, positions] = tokens


def _sees_until(options: DecodingOptions) -> int:
    """The position from which a sentence chooses among candidates."""
    if options.sampling_temperature and not 0 < options.sampling_top_k <= MAX_CANDIDATES:
        return _FOREVER
    return len(options.prefix)


def _fix(log_probs: NDArray[np.float32], ids: NDArray[np.int64], fixed: Fixed) -> None:
    """Leave some rows nothing but one token; the ids of a row stay distinct."""
    rows, tokens = fixed.rows, fixed.tokens
    if ids.shape[1] > 1:
        some = ids[rows]
        ids[rows] = np.where(some == tokens[:, None], some[:, :1], some)
        log_probs[rows] = -np.inf
    ids[rows, 0] = tokens
    log_probs[rows, 0] = fixed.log_probs
