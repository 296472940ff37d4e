"""Sentences in flight: one decode step at a time, with arrivals and departures in between.

`Batch` owns the order of the rows and keeps the model's rows in the same order. Sentences don't
know each other: each has its own position, options and history, so what a sentence becomes does
not depend on its neighbours. Not thread-safe: a batch belongs to one worker.
"""

from collections.abc import Collection, Sequence
from typing import Final, Generic

import numpy as np
from numpy.typing import NDArray

from service.decoding.choices import FinishReason
from service.decoding.coverage import Coverage
from service.decoding.filters import Filters
from service.decoding.hypothesis import Hypothesis
from service.decoding.lanes import LANE, Key, Sentence
from service.decoding.model import StepModel, StepOutput
from service.decoding.options import DecodingOptions
from service.decoding.search import Candidates, best_candidates, live_beams
from service.decoding.stopping import Ended
from service.decoding.trellis import Trellis

_OF_FILTERS: Final = ("slot", "position", "is_filtered", "needs_everything")


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
        self._lanes = np.empty(0, LANE)  # longer than the sentences: it grows by doubling
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
        first_beam = [0.0] + [-np.inf] * (self._beam_size - 1)  # the beams are all alike as yet
        shape = (len(newcomers), self._beam_size)
        tokens = np.concatenate([self._tokens, np.full(shape, self._model.start_id)])
        totals = np.concatenate([self._totals, np.broadcast_to(first_beam, shape)])
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
        self._tokens, self._totals = tokens, totals

    def drop(self, keys: Collection[Key]) -> None:
        """Free the rows of sentences that nobody waits for; keys no longer here are ignored."""
        gone = np.array([sentence.key in keys for sentence in self._sentences], np.bool_)
        if gone.any():
            beams = np.broadcast_to(np.arange(self._beam_size), self._tokens.shape)
            self._continue(gone, self._tokens, self._totals, beams)

    def step(self) -> list[tuple[Key, list[Hypothesis]]]:
        """Decode one token of every sentence; returns those that finished, hypotheses best first.

        A sentence finishes with fewer hypotheses than it asked for only if there aren't more, and
        with none only if the model gives every token a probability of zero or NaN.
        """
        if not self._sentences:
            return []
        lanes = self._lanes[: len(self)]
        positions = np.repeat(lanes["position"], self._beam_size)
        wants_attention = bool((lanes["attention"] | lanes["is_covered"]).any())
        plan = self._filters.plan(*(lanes[field] for field in _OF_FILTERS))
        num_candidates = self._num_candidates + plan.num_more
        output = self._model.step(
            self._tokens, positions, num_candidates, wants_attention, plan.needs_everything
        )
        attention = self._record_attention(lanes, output) if wants_attention else None

        allowed = self._filters.apply(plan, output, self._model.more)
        candidates = best_candidates(self._totals, allowed)
        is_eos = candidates.tokens == self._model.eos_id
        at_limit = lanes["position"] + 1 >= lanes["limit"]
        self._rank_ended(lanes, candidates, is_eos | at_limit[:, None], attention)
        live = live_beams(candidates, is_eos, self._beam_size)
        self._trellis.record(lanes["slot"], lanes["position"], live)
        self._filters.follow(plan, live)
        if attention is not None:
            self._cover(lanes, live, attention)

        # Not `<=`: the bound may be NaN, and then there is nothing to hope for either.
        done = ~(live.totals[:, 0] / lanes["bound_divisor"] > lanes["threshold"]) | at_limit
        lanes["position"] += 1
        results = [self._result(index) for index in np.flatnonzero(done).tolist()]
        self._continue(done, live.tokens, live.totals, live.parents)
        return results

    def _prepare_lanes(self, newcomers: Sequence[Sentence[Key]], slots: list[int]) -> None:
        """Write the lanes behind the live ones; adds the slots they take to `slots`."""
        old, count = len(self), len(self) + len(newcomers)
        if count > len(self._lanes):
            self._lanes = np.resize(self._lanes, 2 * count)
        for index, sentence in enumerate(newcomers, old):
            width = sentence.source_length if sentence.options.attention else 0
            slots.append(self._trellis.acquire(sentence.limit, width))
            self._lanes[index] = sentence.lane(slots[-1])
            self._prepare_extras(sentence, slots[-1])

    def _prepare_extras(self, sentence: Sentence[Key], slot: int) -> None:
        options, length = sentence.options, sentence.source_length
        if options.coverage_penalty:
            self._coverage.join(slot, length, options.coverage_penalty)
        if options.is_filtered:
            self._filters.join(slot, options, length)

    def _record_attention(self, lanes: NDArray[np.void], output: StepOutput) -> NDArray[np.float32]:
        """Keep it for those that asked; returns that of all, (sentences, W, source)."""
        assert output.attention is not None
        slots, positions, asked = lanes["slot"], lanes["position"], lanes["attention"]
        mean: NDArray[np.float32] = output.attention.mean(axis=1, dtype=np.float32)
        mean = mean.reshape(*self._tokens.shape, -1)
        self._trellis.record_attention(slots[asked], positions[asked], mean[asked])
        if (asked := lanes["attention_heads"]).any():
            heads = output.attention.reshape(*self._tokens.shape, *output.attention.shape[1:])
            self._trellis.record_heads(slots[asked], positions[asked], heads[asked])
        return mean

    def _cover(
        self, lanes: NDArray[np.void], live: Candidates, attention: NDArray[np.float32]
    ) -> None:
        (covered,) = lanes["is_covered"].nonzero()
        if len(covered):
            slots, weights = lanes["slot"][covered], attention[covered]
            self._coverage.follow(slots, weights, live.parents[covered])

    def _rank_ended(
        self,
        lanes: NDArray[np.void],
        candidates: Candidates,
        ends: NDArray[np.bool_],
        attention: NDArray[np.float32] | None,
    ) -> None:
        """Hand the candidates that end, and can still count, to the rankings of their sentences."""
        if not ends.any():
            return
        positions, thresholds = lanes["position"], lanes["threshold"]
        scores = self._scores(lanes, candidates, attention)
        indices, ranks = (ends & (scores > thresholds[:, None])).nonzero()
        for where in zip(indices.tolist(), ranks.tolist(), strict=True):
            index, rank = where
            ended = Ended(
                score=scores.item(where),
                log_prob=candidates.totals.item(where),
                rank=rank,
                position=positions.item(index),
                parent=candidates.parents.item(where),
                token=candidates.tokens.item(where),
                token_log_prob=candidates.log_probs.item(where),
            )
            thresholds[index] = self._sentences[index].ranking.add(ended)

    def _scores(
        self,
        lanes: NDArray[np.void],
        candidates: Candidates,
        attention: NDArray[np.float32] | None,
    ) -> NDArray[np.float64]:
        """Of every candidate as a hypothesis that ends, (sentences, C)."""
        offsets = lanes["length_offset"]
        lengths = (lanes["position"] + 1 + offsets) / (1 + offsets)
        scores: NDArray[np.float64] = (
            candidates.totals / (lengths ** lanes["length_penalty"])[:, None]
        )
        (covered,) = lanes["is_covered"].nonzero()
        if len(covered):
            assert attention is not None
            slots, weights = lanes["slot"][covered], attention[covered]
            penalties = self._coverage.penalties(slots, weights)
            scores[covered] += np.take_along_axis(penalties, candidates.parents[covered], axis=1)
        return scores

    def _result(self, index: int) -> tuple[Key, list[Hypothesis]]:
        sentence, slot = self._sentences[index], int(self._lanes["slot"][index])
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
        return Hypothesis(
            ids=tuple(ids),
            log_prob=ended.log_prob,
            score=ended.score,
            finish_reason=reason,
            token_log_probs=np.append(cells["log_prob"], np.float32(ended.token_log_prob)),
            attention=attention,
            attention_heads=heads,
        )

    def _continue(
        self,
        gone: NDArray[np.bool_],
        tokens: NDArray[np.int64],
        totals: NDArray[np.float64],
        parents: NDArray[np.int64],
    ) -> None:
        """Go on with the given beams of the sentences that stay; move the model's rows along."""
        leaving = bool(gone.any())
        order = self._leave(gone) if leaving else np.arange(len(gone))
        self._tokens, self._totals = tokens[order], totals[order]
        if leaving or self._beam_size > 1:  # without either the rows stay as they are
            rows = (order[:, None] * self._beam_size + parents[order]).ravel()
            if leaving or (rows != np.arange(len(rows))).any():
                self._model.reorder(rows)

    def _leave(self, gone: NDArray[np.bool_]) -> NDArray[np.intp]:
        """Remove sentences; returns the old index of each that stays.

        The last ones fill the holes and the others keep their place, so that few rows move.
        """
        for slot in self._lanes["slot"][: len(gone)][gone].tolist():
            self._trellis.release(slot)
        count = len(gone) - np.count_nonzero(gone)
        (holes,) = gone[:count].nonzero()
        movers = (~gone[count:]).nonzero()[0] + count
        self._lanes[holes] = self._lanes[movers]
        for hole, mover in zip(holes.tolist(), movers.tolist(), strict=True):
            self._sentences[hole] = self._sentences[mover]
        del self._sentences[count:]
        order = np.arange(count)
        order[holes] = movers
        return order
