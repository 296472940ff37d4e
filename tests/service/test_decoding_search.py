"""The parts of the search alone: candidates, live beams, stopping rules, history."""

import numpy as np
import pytest
from numpy.typing import NDArray

from service.decoding import DecodingOptions, StepOutput, Stopping
from service.decoding.search import Candidates, best_candidates, live_beams
from service.decoding.stopping import Ended, Ranking
from service.decoding.trellis import Trellis

EOS = 0


def random_output(
    rng: np.random.Generator, rows: int, width: int, vocabulary_size: int = 30
) -> StepOutput:
    log_probs = -np.sort(rng.exponential(size=(rows, width)).round(1)).astype(np.float32)
    ids = rng.permuted(np.tile(np.arange(vocabulary_size), (rows, 1)), axis=1)[:, :width]
    return StepOutput(log_probs, ids)


@pytest.mark.parametrize("beam_size", [1, 2, 4, 7])
def test_candidates_are_the_best_continuations_and_ties_go_to_the_earlier_beam(
    beam_size: int,
) -> None:
    rng = np.random.default_rng(beam_size)
    width = 2 * beam_size if beam_size > 1 else 1
    output = random_output(rng, 5 * beam_size, width)  # rounded: there are many ties
    totals = -np.sort(rng.exponential(size=(5, beam_size)).round(1))
    candidates = best_candidates(totals, output)
    for sentence in range(5):
        everything = sorted(
            (-(totals[sentence, beam] + output.log_probs[row, rank]), beam, rank)
            for beam, row in enumerate(range(sentence * beam_size, (sentence + 1) * beam_size))
            for rank in range(width)
        )
        for column, (total, beam, rank) in enumerate(everything[:width]):
            row = sentence * beam_size + beam
            assert candidates.totals[sentence, column] == -total
            assert candidates.parents[sentence, column] == beam
            assert candidates.tokens[sentence, column] == output.ids[row, rank]
            assert candidates.log_probs[sentence, column] == output.log_probs[row, rank]


def test_live_beams_are_the_first_candidates_that_go_on() -> None:
    is_eos = np.array([[0, 1, 0, 1], [1, 1, 0, 0], [0, 0, 0, 0]], np.bool_)
    columns = np.tile(np.arange(4), (3, 1))
    candidates = Candidates(-columns.astype(np.float64), columns.astype("f4"), columns, columns)
    live = live_beams(candidates, is_eos, beam_size=2)
    assert live.tokens.tolist() == [[0, 2], [2, 3], [0, 1]]
    assert live.totals.tolist() == [[0, -2], [-2, -3], [0, -1]]


def test_a_greedy_beam_that_ended_is_dead() -> None:
    column = np.array([[5], [EOS]])
    candidates = Candidates(column - 9.0, column.astype(np.float32), column, column)
    live = live_beams(candidates, column == EOS, beam_size=1)
    assert live.totals.tolist() == [[-4.0], [-np.inf]]


def ended(score: float, rank: int = 1) -> Ended:
    return Ended(score, score, rank, position=0, parent=0, token=EOS, token_log_prob=score)


def test_best_waits_for_live_beams_that_can_enter_the_n_best() -> None:
    ranking = Ranking(DecodingOptions(beam_size=4, num_hypotheses=2))
    assert ranking.add(ended(-3.0)) == -np.inf
    assert ranking.add(ended(-1.0, rank=7)) == -3.0
    assert ranking.add(ended(-2.0)) == -2.0
    assert [hypothesis.score for hypothesis in ranking.best()] == [-1.0, -2.0]


def test_finished_counts_hypotheses_of_the_first_ranks() -> None:
    options = DecodingOptions(beam_size=3, stopping=Stopping.FINISHED)
    ranking = Ranking(options)
    assert ranking.add(ended(-1.0, rank=0)) == -np.inf
    assert ranking.add(ended(-1.0, rank=3)) == -np.inf  # not among the first three
    assert ranking.add(ended(-2.0, rank=2)) == -np.inf
    assert ranking.add(ended(-0.5, rank=1)) == np.inf
    assert [hypothesis.score for hypothesis in ranking.best()] == [-0.5]


def test_finished_without_length_penalty_stops_once_a_best_candidate_ended() -> None:
    options = DecodingOptions(
        beam_size=4, num_hypotheses=2, length_penalty=0, stopping=Stopping.FINISHED
    )
    ranking = Ranking(options)
    assert ranking.add(ended(-1.0, rank=2)) == -np.inf
    assert ranking.add(ended(-1.5, rank=3)) == -np.inf
    assert ranking.add(ended(-1.2, rank=0)) == np.inf


def test_equal_scores_rank_by_age() -> None:
    ranking = Ranking(DecodingOptions(beam_size=2, num_hypotheses=2))
    first, second = ended(-1.0, rank=1), ended(-1.0, rank=0)
    ranking.add(first)
    ranking.add(second)
    assert ranking.best() == [first, second]


def history(
    trellis: Trellis, slot: int, beams: NDArray[np.int64], tokens: NDArray[np.int64]
) -> None:
    """Record steps of one sentence: `beams` and `tokens` are (steps, W)."""
    for step in range(len(beams)):
        shape = beams[step : step + 1].shape
        live = Candidates(
            np.zeros(shape), np.zeros(shape, np.float32), tokens[None, step], beams[None, step]
        )
        trellis.record(np.array([slot]), np.array([step], np.int32), live)


def test_a_hypothesis_is_read_backwards_through_its_beams() -> None:
    trellis = Trellis(beam_size=2)
    slot = trellis.acquire(max_length=4, attention_width=0)
    #   10 ─┐ ┌─ 20 ─┬─ 30
    #   11 ─┴─│      └─ 31   (beam 0 continues beam 1 in the second step)
    beams = np.array([[0, 0], [1, 0], [0, 0]])
    history(trellis, slot, beams, np.array([[10, 11], [20, 21], [30, 31]]))
    cells, path = trellis.trace(slot, position=3, beam=1)
    assert cells["token"].tolist() == [11, 20, 31]
    assert path.tolist() == [0, 1, 0, 1]


def test_a_slot_keeps_its_history_while_the_trellis_grows() -> None:
    trellis = Trellis(beam_size=1)
    first = trellis.acquire(max_length=2, attention_width=1)
    history(trellis, first, np.array([[0], [0]]), np.array([[5], [6]]))
    trellis.record_attention(np.array([first]), np.array([0], np.int32), np.full((1, 1, 1), 0.5))
    others = [trellis.acquire(max_length=9, attention_width=7) for _ in range(9)]
    assert len({first, *others}) == 10
    cells, path = trellis.trace(first, position=2, beam=0)
    assert cells["token"].tolist() == [5, 6]
    assert trellis.attention(first, path[:1], 1).tolist() == [[0.5]]


def test_a_released_slot_is_used_again() -> None:
    trellis = Trellis(beam_size=1)
    slot = trellis.acquire(max_length=2, attention_width=0)
    trellis.release(slot)
    assert trellis.acquire(max_length=2, attention_width=0) == slot
