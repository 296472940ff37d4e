"""Sentences in flight: one decode step at a time, with arrivals and departures in between.

`Batch` owns the order of the rows and keeps the model's rows in the same order. Sentences don't
know each other: each has its own position, options and history, so what a sentence becomes does
not depend on its neighbours. Not thread-safe: a batch belongs to one worker.
"""

from collections.abc import Collection, Sequence
from typing import Generic

import numpy as np
from numpy.typing import NDArray

from service.decoding.choices import FinishReason
from service.decoding.coverage import Coverage
from service.decoding.filters import NOTHING, Filters, Plan
from service.decoding.hypothesis import Hypothesis
from service.decoding.lanes import Key, Lanes, Sentence
from service.decoding.model import StepModel, StepOutput
from service.decoding.options import DecodingOptions
from service.decoding.search import Candidates, best_candidates, live_beams
from service.decoding.stopping import Ended
from service.decoding.trellis import Trellis


class Batch(Generic[Key]):
    """The live sentences of one model, all with the same beam size.

    The model must have no rows at first, and nobody else may append or reorder them. After an
    exception of the model the batch and the model are to be thrown away.
    """

    def __init__(self, model: StepModel, beam_size: int) -> None:
        self._model = model
        self._beam_size = beam_size
        self._num_candidates = 2 * beam_size if beam_size > 1 else 1
        self._sentences: list[Sentence[Key]] = []
        self._trellis = Trellis(beam_size)
        self._coverage = Coverage(beam_size)
        self._filters = Filters(model.eos_id, beam_size)
        self._lanes = Lanes()
        self._tokens = np.empty((0, beam_size), np.int64)
        self._totals = np.empty((0, beam_size), np.float64)

    def __len__(self) -> int:
        return len(self._sentences)

    def join(
        self,
        keys: Sequence[Key],
        sources: Sequence[Sequence[int]],
        options: Sequence[DecodingOptions],
    ) -> None:
        """Let sentences, given as ids with EOS, take part from the next step on.

        If the model refuses to encode them, or anything else fails, the exception passes and the
        batch is as before: the model's rows come last of all that can fail.
        """
        assert all(option.beam_size == self._beam_size for option in options)
        if not keys:
            return
        newcomers = [
            Sentence(key, len(source), option)
            for key, source, option in zip(keys, sources, options, strict=True)
        ]
        tokens, totals = self._first_beams(len(newcomers))
        slots = list[int]()
        try:
            self._prepare_lanes(newcomers, slots)
            listed = [option.uses_shortlist for option in options]
            self._model.append(sources, self._beam_size, listed)
        except BaseException:
            for slot in slots:
                self._trellis.release(slot)
            raise
        self._sentences += newcomers
        self._lanes.extend(len(newcomers))
        self._tokens, self._totals = tokens, totals

    def drop(self, keys: Collection[Key]) -> None:
        """Free the rows of sentences that nobody waits for; keys no longer here are ignored."""
        stays = np.array([sentence.key not in keys for sentence in self._sentences], np.bool_)
        if not stays.all():
            beams = np.broadcast_to(np.arange(self._beam_size), self._tokens.shape)
            self._continue(stays, self._tokens, self._totals, beams)

    def step(self) -> list[tuple[Key, list[Hypothesis]]]:
        """Decode one token of every sentence; returns those that finished, hypotheses best first.

        A sentence finishes with fewer hypotheses than it asked for only if there aren't more, and
        with none only if the model gives every token a probability of zero or NaN.
        """
        if not self._sentences:
            return []
        lanes, plan = self._lanes, self._plan()
        output = self._model.step(
            self._tokens,
            lanes.position.repeat(self._beam_size),
            self._num_candidates + plan.num_more,
            lanes.want_attention,
            plan.needs_everything,
        )
        attention = self._record_attention(output) if lanes.want_attention else None

        allowed = self._filters.apply(plan, output, self._model.more)
        candidates = best_candidates(self._totals, allowed)
        is_eos, at_limit = candidates.tokens == self._model.eos_id, lanes.at_limit()
        ends = is_eos if at_limit is None else is_eos | at_limit[:, None]
        self._rank_ended(candidates, ends, attention)
        live = live_beams(candidates, is_eos, self._beam_size)
        self._trellis.record(lanes.slot, lanes.position, live)
        self._filters.follow(plan, live)
        if attention is not None:
            self._cover(live, attention)

        # The bound may be NaN, and then there is nothing to hope for either.
        stays = live.totals[:, 0] / lanes.bound_divisor > lanes.threshold
        if at_limit is not None:
            stays &= ~at_limit
        lanes.advance()
        if np.count_nonzero(stays) == len(stays):
            self._go_on(live)
            return []
        results = [self._result(index) for index in np.flatnonzero(~stays).tolist()]
        self._continue(stays, live.tokens, live.totals, live.parents)
        return results

    def _first_beams(self, count: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The last tokens and the totals of all beams, with those of `count` newcomers."""
        tokens = np.full((count, self._beam_size), self._model.start_id)
        totals = np.full(tokens.shape, -np.inf)
        totals[:, 0] = 0  # the beams are all alike as yet
        return np.concatenate([self._tokens, tokens]), np.concatenate([self._totals, totals])

    def _prepare_lanes(self, newcomers: Sequence[Sentence[Key]], slots: list[int]) -> None:
        """Write the lanes behind the live ones; adds the slots they take to `slots`."""
        for sentence in newcomers:
            width = sentence.source_length if sentence.options.attention else 0
            slots.append(self._trellis.acquire(sentence.limit, width))
            self._prepare_extras(sentence, slots[-1])
        self._lanes.prepare(
            [sentence.lane(slot) for sentence, slot in zip(newcomers, slots, strict=True)]
        )

    def _prepare_extras(self, sentence: Sentence[Key], slot: int) -> None:
        options, length = sentence.options, sentence.source_length
        if options.coverage_penalty:
            self._coverage.join(slot, length, options.coverage_penalty)
        if options.is_filtered:
            self._filters.join(slot, options, length)

    def _plan(self) -> Plan:
        lanes = self._lanes
        if not lanes.are_filtered:
            return NOTHING
        return self._filters.plan(
            lanes.slot, lanes.position, lanes.is_filtered, lanes.needs_everything
        )

    def _record_attention(self, output: StepOutput) -> NDArray[np.float32]:
        """Keep it for those that asked; returns that of all, (sentences, W, source)."""
        assert output.attention is not None
        slots, positions, asked = self._lanes.slot, self._lanes.position, self._lanes.attention
        mean: NDArray[np.float32] = output.attention.mean(axis=1, dtype=np.float32)
        mean = mean.reshape(*self._tokens.shape, -1)
        self._trellis.record_attention(slots[asked], positions[asked], mean[asked])
        if self._lanes.want_heads:
            asked = self._lanes.attention_heads
            heads = output.attention.reshape(*self._tokens.shape, *output.attention.shape[1:])
            self._trellis.record_heads(slots[asked], positions[asked], heads[asked])
        return mean

    def _cover(self, live: Candidates, attention: NDArray[np.float32]) -> None:
        if len(covered := self._lanes.covered):
            slots, weights = self._lanes.slot[covered], attention[covered]
            self._coverage.follow(slots, weights, live.parents[covered])

    def _rank_ended(
        self,
        candidates: Candidates,
        ends: NDArray[np.bool_],
        attention: NDArray[np.float32] | None,
    ) -> None:
        """Hand the candidates that end, and can still count, to the rankings of their sentences."""
        indices, ranks = (where.tolist() for where in ends.nonzero())
        if not indices:
            return
        lanes, penalties = self._lanes, self._penalties(attention)
        thresholds = lanes.threshold.tolist()  # of before the step
        for index, rank in zip(indices, ranks, strict=True):
            sentence, position = self._sentences[index], lanes.position.item(index)
            total = candidates.totals.item(index, rank)
            parent = candidates.parents.item(index, rank)
            score = total / sentence.options.length_divisor(position + 1)
            if penalties is not None:
                score += penalties.item(index, parent)
            if score > thresholds[index]:
                ended = Ended(
                    score=score,
                    log_prob=total,
                    rank=rank,
                    position=position,
                    parent=parent,
                    token=candidates.tokens.item(index, rank),
                    token_log_prob=candidates.log_probs.item(index, rank),
                )
                lanes.threshold[index] = sentence.ranking.add(ended)

    def _penalties(self, attention: NDArray[np.float32] | None) -> NDArray[np.float64] | None:
        """What the coverage costs a hypothesis that ends, (sentences, W), if it costs anybody."""
        covered = self._lanes.covered
        if attention is None or not len(covered):
            return None
        penalties = np.zeros(self._totals.shape)
        slots, weights = self._lanes.slot[covered], attention[covered]
        penalties[covered] = self._coverage.penalties(slots, weights)
        return penalties

    def _result(self, index: int) -> tuple[Key, list[Hypothesis]]:
        sentence, slot = self._sentences[index], self._lanes.slot.item(index)
        best = sentence.ranking.best()
        return sentence.key, [self._hypothesis(sentence, slot, ended) for ended in best]

    def _hypothesis(self, sentence: Sentence[Key], slot: int, ended: Ended) -> Hypothesis:
        cells, beams = self._trellis.trace(slot, ended.position, ended.parent)
        ids = cells["token"].tolist()
        reason = FinishReason.END_OF_SENTENCE
        if ended.token != self._model.eos_id:
            ids.append(ended.token)
            reason = FinishReason.LENGTH_LIMIT
        predictors, options = beams[: len(ids)], sentence.options
        source_length = sentence.source_length
        attention = heads = None
        if options.attention:
            attention = self._trellis.attention(slot, predictors, source_length)
        if options.attention_heads:
            heads = self._trellis.heads(slot, predictors, source_length)
        log_probs = np.empty(len(cells) + 1, np.float32)
        log_probs[:-1], log_probs[-1] = cells["log_prob"], ended.token_log_prob
        return Hypothesis(
            ids=tuple(ids),
            log_prob=ended.log_prob,
            score=ended.score,
            finish_reason=reason,
            token_log_probs=log_probs,
            attention=attention,
            attention_heads=heads,
        )

    def _go_on(self, live: Candidates) -> None:
        """Nobody leaves: without beams that change places, the model's rows stay as they are."""
        self._tokens, self._totals = live.tokens.copy(), live.totals  # tokens may be the model's
        if self._beam_size > 1:
            first_rows = np.arange(0, live.parents.size, self._beam_size)
            self._model.reorder((first_rows[:, None] + live.parents).ravel())

    def _continue(
        self,
        stays: NDArray[np.bool_],
        tokens: NDArray[np.int64],
        totals: NDArray[np.float64],
        parents: NDArray[np.int64],
    ) -> None:
        """Go on with the given beams of the sentences that stay; move the model's rows along."""
        order = self._leave(stays)
        self._tokens, self._totals = tokens[order], totals[order]
        self._model.reorder((order[:, None] * self._beam_size + parents[order]).ravel())

    def _leave(self, stays: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Remove sentences; returns the old index of each that stays.

        The last ones fill the holes and the others keep their place, so that few rows move.
        """
        for slot in self._lanes.slot[~stays].tolist():
            self._trellis.release(slot)
        count = int(np.count_nonzero(stays))
        (holes,) = (~stays[:count]).nonzero()
        movers = stays[count:].nonzero()[0] + count
        self._lanes.shrink(count, holes, movers)
        for hole, mover in zip(holes.tolist(), movers.tolist(), strict=True):
            self._sentences[hole] = self._sentences[mover]
        del self._sentences[count:]
        order = np.arange(count)
        order[holes] = movers
        return order
