"""How long an answer takes, and who is refused because that is too long."""

import math

import pytest

from service.batching import Batcher, Load, QueueLimits, Sentence, Throughput
from service.decoding import DecodingOptions
from service.errors import DeadlineExceeded, QueueFull, Refusal

LIMITS = QueueLimits(max_tokens=10_000)
SECONDS_EACH = 0.01  # what a source token takes after `work`


def work(
    throughput: Throughput,
    *,
    start: float = 0.0,
    steps: int = 100,
    step_seconds: float = 0.05,
    somebody_waits: bool = True,
) -> float:
    """A batch of 10 rows whose sentences take twice as many steps as they have source tokens."""
    now = start
    for number in range(steps):
        now = start + number * step_seconds
        throughput.stepped(10, somebody_waits, now)
        throughput.finished(5, 10)
    return now


def each(throughput: Throughput, now: float) -> float:
    seconds = throughput.seconds_each(now)
    assert seconds is not None
    return seconds


def test_a_source_token_takes_its_share_of_the_steps() -> None:
    throughput = Throughput()
    now = work(throughput, step_seconds=0.05)
    assert each(throughput, now) == pytest.approx(0.05 / 10 * 2)


def test_nothing_is_known_before_there_was_enough_to_do() -> None:
    throughput = Throughput(min_seconds=1.0)
    assert throughput.seconds_each(0.0) is None
    now = work(throughput, steps=20, step_seconds=0.05)
    assert throughput.seconds_each(now) is None
    now = work(throughput, start=now + 0.05, steps=20, step_seconds=0.05)
    assert throughput.seconds_each(now) is not None


def test_time_in_which_nobody_waited_does_not_count() -> None:
    throughput = Throughput()
    now = work(throughput, somebody_waits=False)
    assert throughput.seconds_each(now) is None
    now = work(throughput, start=now + 100.0)
    idle = work(throughput, start=now, steps=10, step_seconds=0.2, somebody_waits=False)
    assert each(throughput, idle) == pytest.approx(SECONDS_EACH)
    again = work(throughput, start=idle + 1.0)
    assert each(throughput, again) == pytest.approx(SECONDS_EACH)


def test_a_model_that_became_slower_is_noticed_in_some_seconds() -> None:
    throughput = Throughput(memory_seconds=2.0)
    now = work(throughput, steps=200, step_seconds=0.05)
    now = work(throughput, start=now + 0.1, steps=100, step_seconds=0.1)
    assert each(throughput, now) == pytest.approx(2 * SECONDS_EACH, rel=0.02)


def test_an_old_estimate_is_forgotten() -> None:
    throughput = Throughput(memory_seconds=2.0)
    now = work(throughput)
    assert throughput.seconds_each(now + 1.0) is not None
    assert throughput.seconds_each(now + 10.0) is None


def test_workers_that_take_turns_are_twice_as_fast() -> None:
    alone, together = Throughput(), Throughput()
    slow = work(alone, step_seconds=0.1)
    fast = work(together, steps=200, step_seconds=0.05)
    assert each(together, fast) == pytest.approx(each(alone, slow) / 2)


def request(
    group: object, tokens: int, deadline: float = math.inf, beam_size: int = 1
) -> list[Sentence]:
    options = DecodingOptions(beam_size=beam_size)
    return [Sentence(range(10), options, 0.0, deadline, group) for _ in range(tokens // 10)]


@pytest.fixture
def batcher() -> Batcher:
    """An empty queue whose model takes `SECONDS_EACH`, by experience that ends at 0."""
    batcher = Batcher(LIMITS)
    work(batcher.throughput, start=-99 * 0.05)
    return batcher


def refusal(batcher: Batcher, sentences: list[Sentence], loads: list[Load]) -> QueueFull:
    before = batcher.num_sentences, batcher.num_tokens
    with pytest.raises(QueueFull) as caught:
        batcher.add(sentences, 0.0, loads=loads)
    assert (batcher.num_sentences, batcher.num_tokens) == before
    return caught.value


def test_a_deadline_that_cannot_be_met_is_refused(batcher: Batcher) -> None:
    batcher.add(request("before", 200), 0.0)
    error = refusal(batcher, request("late", 100, deadline=2.5), [])
    assert error.reason is Refusal.DEADLINE
    assert error.retry_after_seconds == pytest.approx(0.5)
    assert "about 3 s" in str(error) and "in 2.5 s" in str(error)
    batcher.add(request("patient", 100, deadline=3.1), 0.0)


def test_what_is_in_flight_comes_first(batcher: Batcher) -> None:
    loads = [Load(16, 4, 2, num_tokens=50), Load(16)]
    refusal(batcher, request("late", 100, deadline=1.9), loads)
    batcher.add(request("patient", 100, deadline=2.1), 0.0, loads=loads)
    assert batcher.num_tokens == 100


def test_a_beam_counts_as_often_as_it_is_wide(batcher: Batcher) -> None:
    refusal(batcher, request("late", 100, deadline=3.9, beam_size=4), [])
    batcher.add(request("patient", 100, deadline=4.1, beam_size=4), 0.0)
    assert batcher.num_tokens == 100


def test_another_width_takes_as_long_as_this_one(batcher: Batcher) -> None:
    batcher.add(request("wide", 1000, beam_size=4), 0.0)
    refusal(batcher, request("late", 100, deadline=1.9), [])
    batcher.add(request("patient", 100, deadline=2.1), 0.0)
    assert batcher.num_tokens == 1100


def test_a_large_request_is_no_reason_to_refuse_a_small_one(batcher: Batcher) -> None:
    batcher.add(request("large", 9000), 0.0)
    batcher.admit(Load(1), (), 0.0)
    before = batcher.num_tokens
    refusal(batcher, request("large too", 900, deadline=0.3), [])
    batcher.add(request("small", 20, deadline=0.3), 0.0)
    assert batcher.num_tokens == before + 20


def test_what_a_request_adds_later_counts_and_what_it_added_before_is_started(
    batcher: Batcher,
) -> None:
    with pytest.raises(QueueFull):
        batcher.add(request("a", 100, deadline=1.5), 0.0, tokens_to_come=100)
    batcher.add(request("a", 100, deadline=2.1), 0.0, tokens_to_come=100)
    batcher.add(request("a", 100, deadline=0.1), 0.0, tokens_to_come=None)
    assert batcher.num_tokens == 200


def test_nobody_is_refused_before_anything_is_known() -> None:
    batcher = Batcher(LIMITS)
    batcher.add(request("first", 5000), 0.0)
    batcher.add(request("second", 1000, deadline=0.001), 0.0)
    assert batcher.num_tokens == 6000


def test_a_deadline_that_has_passed_is_not_queued(batcher: Batcher) -> None:
    for tokens_to_come in (0, None):
        with pytest.raises(DeadlineExceeded):
            batcher.add(request("late", 10, deadline=1.0), 1.0, tokens_to_come=tokens_to_come)
    assert batcher.num_sentences == 0


def test_a_full_queue_says_when_it_will_be_empty(batcher: Batcher) -> None:
    batcher.add(request("before", 9950), 0.0)
    error = refusal(batcher, request("late", 100), [])
    assert error.reason is Refusal.QUEUE_TOKENS
    assert error.retry_after_seconds == pytest.approx(9950 * SECONDS_EACH, rel=0.01)
