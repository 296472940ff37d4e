"""Who joins a batch, and when: order, widths, bounds, and those who left."""

import math
import random
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.batching import Batcher, Load, QueueLimits, Sentence
from service.decoding import DecodingOptions
from service.errors import InvalidArgument, QueueFull, Refusal

LIMITS = QueueLimits(
    max_sentences=8, max_tokens=100, max_joining_tokens=40, max_width_wait_seconds=1.0
)


def sentence(
    length: int = 5, *, beam_size: int = 1, enqueued: float = 0.0, deadline: float = math.inf
) -> Sentence:
    return Sentence(range(length), DecodingOptions(beam_size=beam_size), enqueued, deadline)


def batcher_with(*sentences: Sentence, limits: QueueLimits = LIMITS) -> Batcher:
    batcher = Batcher(limits)
    for each in sentences:
        batcher.add([each], now=0.0)
    return batcher


def admitted(batcher: Batcher, load: Load, *others: Load, now: float = 0.0) -> list[Sentence]:
    return batcher.admit(load, others, now).joining


def test_sentences_join_in_the_order_they_came() -> None:
    first, second, third = (sentence(enqueued=at) for at in (0.0, 1.0, 2.0))
    batcher = batcher_with(first, second, third)
    assert admitted(batcher, Load(max_rows=2)) == [first, second]
    assert admitted(batcher, Load(max_rows=2)) == [third]
    assert batcher.num_sentences == batcher.num_tokens == 0


def test_only_free_rows_are_filled() -> None:
    wide = [sentence(beam_size=4) for _ in range(4)]
    batcher = batcher_with(*wide)
    assert admitted(batcher, Load(max_rows=16, num_sentences=3, beam_size=4)) == wide[:1]
    assert admitted(batcher, Load(max_rows=16, num_sentences=4, beam_size=4)) == []


def test_newcomers_stay_under_the_budget_of_tokens() -> None:
    sentences = [sentence(15) for _ in range(3)]
    batcher = batcher_with(*sentences)
    assert admitted(batcher, Load(max_rows=8)) == sentences[:2]
    assert admitted(batcher, Load(max_rows=8)) == sentences[2:]


def test_a_sentence_above_the_budget_joins_alone() -> None:
    giant, small = sentence(50), sentence(5)
    batcher = batcher_with(giant, small)
    assert admitted(batcher, Load(max_rows=8)) == [giant]
    assert admitted(batcher, Load(max_rows=8)) == [small]


def test_sentences_of_a_length_join_together() -> None:
    lengths = [3, 9, 4, 8, 3]
    batcher = batcher_with(*(sentence(length) for length in lengths))
    together = [admitted(batcher, Load(max_rows=2)) for _ in range(3)]
    assert [[len(each.ids) for each in group] for group in together] == [[9, 8], [4, 3], [3]]


def test_nobody_is_overtaken_by_more_than_a_page() -> None:
    sentences = [sentence(1 + index % 7, enqueued=index) for index in range(700)]
    limits = replace(LIMITS, max_sentences=700, max_tokens=10_000)
    batcher = batcher_with(*sentences, limits=limits)
    joined = list[Sentence]()
    while batcher.num_sentences:
        joined += admitted(batcher, Load(max_rows=8))
    for place, each in enumerate(joined):
        assert place // 256 == int(each.enqueued) // 256


def test_a_batch_is_refilled_by_a_few_at_a_time_when_many_wait() -> None:
    batcher = batcher_with(*(sentence() for _ in range(8)))
    assert admitted(batcher, Load(16, num_sentences=13, beam_size=1)) == []
    assert len(admitted(batcher, Load(16, num_sentences=12, beam_size=1))) == 4
    assert len(admitted(batcher, Load(16, num_sentences=1, beam_size=1))) == 4


def test_other_beam_widths_wait_for_their_own_batch() -> None:
    narrow, wide = sentence(enqueued=0.0), sentence(beam_size=4, enqueued=0.5)
    batcher = batcher_with(wide, narrow)
    assert admitted(batcher, Load(16, num_sentences=1, beam_size=1)) == [narrow]
    assert admitted(batcher, Load(16, num_sentences=2, beam_size=1), now=0.5) == []
    assert admitted(batcher, Load(16)) == [wide]


def test_an_idle_worker_takes_the_width_of_the_oldest() -> None:
    narrow, wide = sentence(enqueued=2.0), sentence(beam_size=4, enqueued=1.0)
    assert admitted(batcher_with(narrow, wide), Load(16)) == [wide]


def test_a_width_that_waited_too_long_stops_the_running_one() -> None:
    wide, narrow = sentence(beam_size=4, enqueued=0.0), sentence(enqueued=0.1)
    batcher = batcher_with(wide, narrow)
    running = Load(16, num_sentences=1, beam_size=1)
    assert admitted(batcher, running, now=1.0) == []
    assert admitted(batcher, Load(16), now=1.1) == [wide]  # the batch has run empty
    assert admitted(batcher, running, now=1.1) == [narrow]


def test_a_width_that_another_worker_runs_stops_nobody() -> None:
    wide, narrow = sentence(beam_size=4, enqueued=0.0), sentence(enqueued=0.1)
    running = Load(16, num_sentences=1, beam_size=1)
    other = Load(16, num_sentences=4, beam_size=4)
    assert admitted(batcher_with(wide, narrow), running, other, now=5.0) == [narrow]


@pytest.mark.parametrize("beam_size", [1, 4])
def test_no_width_starves_under_a_stream_of_another(beam_size: int) -> None:
    lonely = sentence(beam_size=5 - beam_size, enqueued=0.0)
    batcher, load, now = batcher_with(lonely), Load(16, 1, beam_size), 0.0
    for _ in range(100):
        now += 0.1
        batcher.add([sentence(beam_size=beam_size, enqueued=now)], now)
        joining = admitted(batcher, load, now=now)
        if lonely in joining:
            break
        # One sentence of the batch finishes at every step.
        running = load.num_sentences + len(joining) - 1
        load = Load(16, running, beam_size if running else None)
        if batcher.num_sentences > 4:
            batcher.take_all()
            batcher.add([lonely], now)
    assert lonely in joining


def test_few_sentences_are_spread_over_idle_workers() -> None:
    batcher = batcher_with(*(sentence() for _ in range(5)))
    first, second = Load(16), Load(16)
    assert len(admitted(batcher, first, second)) == 3
    first = Load(16, num_sentences=3, beam_size=1)
    assert len(admitted(batcher, second, first)) == 2


def test_the_busier_worker_leaves_newcomers_to_the_other() -> None:
    batcher = batcher_with(sentence(), sentence())
    busy, quiet = Load(16, 6, 1), Load(16, 1, 1)
    assert admitted(batcher, busy, quiet) == []
    assert len(admitted(batcher, quiet, busy)) == 2


def test_a_worker_of_another_width_is_no_reason_to_wait() -> None:
    batcher = batcher_with(sentence(), sentence())
    assert len(admitted(batcher, Load(16, 6, 1), Load(16, 1, 4))) == 2


def test_a_worker_that_is_dead_gets_no_share() -> None:
    batcher = batcher_with(*(sentence() for _ in range(5)))
    assert len(admitted(batcher, Load(16), Load(16, is_working=False))) == 5


def test_sentences_beyond_a_limit_are_refused_together() -> None:
    batcher = batcher_with(*(sentence() for _ in range(7)))
    with pytest.raises(QueueFull, match="7 sentences .* 35 tokens .* 8 and 100") as refusal:
        batcher.add([sentence(), sentence()], now=0.0)
    assert refusal.value.reason is Refusal.QUEUE_SENTENCES
    batcher.add([sentence()], now=0.0)
    assert batcher.num_sentences == 8


def test_tokens_are_limited_too() -> None:
    batcher = batcher_with(sentence(60))
    with pytest.raises(QueueFull) as refusal:
        batcher.add([sentence(50)], now=0.0)
    assert refusal.value.reason is Refusal.QUEUE_TOKENS
    batcher.add([sentence(40)], now=0.0)
    assert batcher.num_tokens == 100


def test_a_refusal_says_when_to_come_back() -> None:
    batcher = batcher_with(*(sentence(enqueued=2.0) for _ in range(8)))
    with pytest.raises(QueueFull) as refusal:
        batcher.add([sentence()], now=5.0)
    assert refusal.value.retry_after_seconds == 3.0


def test_cancelled_sentences_leave_instead_of_joining() -> None:
    stays, leaves = sentence(), sentence()
    batcher = batcher_with(leaves, stays)
    leaves.future.cancel()
    admission = batcher.admit(Load(16), (), now=0.0)
    assert (admission.joining, admission.gone) == ([stays], [leaves])


def test_expired_sentences_leave_wherever_they_stand() -> None:
    first, late, last = sentence(), sentence(deadline=3.0), sentence()
    batcher = batcher_with(first, late, last)
    full = Load(max_rows=1, num_sentences=1, beam_size=1)
    assert batcher.admit(full, (), now=2.9).gone == []
    assert batcher.admit(full, (), now=3.0).gone == [late]
    assert batcher.admit(full, (), now=3.1).gone == []
    assert admitted(batcher, Load(16), now=3.1) == [first, last]


def test_who_expired_since_the_queue_was_searched_does_not_join() -> None:
    first, second, last = sentence(deadline=1.0), sentence(deadline=1.01), sentence()
    batcher = batcher_with(first, second, last)
    full = Load(max_rows=1, num_sentences=1, beam_size=1)
    assert batcher.admit(full, (), now=1.0).gone == [first]
    admission = batcher.admit(Load(16), (), now=1.01)
    assert (admission.joining, admission.gone) == ([last], [second])


def test_those_who_left_make_room() -> None:
    batcher = batcher_with(*(sentence() for _ in range(7)), leaver := sentence())
    leaver.future.cancel()
    batcher.add([sentence()], now=0.0)
    assert batcher.num_sentences == 8
    assert batcher.admit(Load(16), (), now=0.0).gone == [leaver]


def test_an_unlimited_queue_hands_everything_to_one_worker() -> None:
    many = [sentence(10) for _ in range(100)]
    limits = replace(LIMITS, max_sentences=100, max_tokens=1000, max_joining_tokens=1000)
    assert admitted(batcher_with(*many, limits=limits), Load(max_rows=128)) == many


def test_more_than_an_empty_queue_holds_is_refused_for_good() -> None:
    batcher = Batcher(LIMITS)
    with pytest.raises(InvalidArgument, match="9 sentences with 45 tokens .* 8 and 100"):
        batcher.add([sentence() for _ in range(9)], now=0.0)
    with pytest.raises(InvalidArgument, match="1 sentences with 101 tokens .* 8 and 100"):
        batcher.add([sentence(101)], now=0.0)


def test_the_queue_is_searched_for_leavers_now_and_then_not_at_every_refusal() -> None:
    batcher = batcher_with(leaver := sentence(), *(sentence() for _ in range(7)))
    with pytest.raises(QueueFull):
        batcher.add([sentence()], now=0.0)
    leaver.future.cancel()
    with pytest.raises(QueueFull):
        batcher.add([sentence()], now=0.01)
    batcher.add([sentence()], now=0.1)
    assert batcher.num_sentences == 8


def test_a_leaver_does_not_age_its_line() -> None:
    old, young = sentence(enqueued=0.0, deadline=1.0), sentence(enqueued=2.0)
    wide = sentence(beam_size=4, enqueued=1.5)
    batcher = batcher_with(longest := sentence(9), old, young, wide)
    assert admitted(batcher, Load(max_rows=1), now=0.5) == [longest]
    assert admitted(batcher, Load(16), now=2.5) == [wide]


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([48, 700]), st.booleans(), st.booleans())
def test_nobody_is_overtaken_by_more_than_a_page_whoever_leaves_or_is_refused(
    seed: int, max_sentences: int, some_expire: bool, some_cancel: bool
) -> None:
    rng = random.Random(seed)
    limits = replace(LIMITS, max_sentences=max_sentences, max_tokens=1 << 20)
    batcher, load = Batcher(limits), Load(max_rows=8)
    came, joined = list[Sentence](), list[Sentence]()
    for step in range(200):
        for _ in range(rng.choice([4, 12])):
            deadline = step + 3.0 if some_expire and rng.random() < 0.2 else math.inf
            length = rng.choice([2, 20, 20, 20])
            newcomer = sentence(length, enqueued=len(came), deadline=deadline)
            with suppress(QueueFull):
                batcher.add([newcomer], now=step)
                came.append(newcomer)
        if some_cancel:
            rng.choice(came).future.cancel()
        joined += admitted(batcher, load, now=step)
    places = {each: place for place, each in enumerate(joined)}
    for each in came:
        # All that joined before it, or at all if it still waits, but came after it.
        before = joined[: places.get(each, len(joined))]
        overtakers = sum(other.enqueued > each.enqueued for other in before)
        assert overtakers <= 256 or each.is_gone(200)
