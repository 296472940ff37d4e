"""Room for requests that are being read: kept for them, and for nobody else."""

import pytest

from service.batching import Batcher, Load, QueueLimits, Request, Sentence, Throughput
from service.decoding import DecodingOptions
from service.errors import QueueFull, Refusal

LIMITS = QueueLimits(max_sentences=8, max_tokens=1000)


def sentences_of(request: object, count: int, length: int = 10) -> list[Sentence]:
    return [
        Sentence(range(length), DecodingOptions(), enqueued=0.0, group=request)
        for _ in range(count)
    ]


def refusal(batcher: Batcher, request: Request, loads: tuple[Load, ...] = ()) -> QueueFull:
    with pytest.raises(QueueFull) as caught:
        batcher.expect(request, 0.0, loads)
    return caught.value


@pytest.fixture
def experienced() -> Batcher:
    """An empty queue whose model takes a hundredth of a second for a source token, as of 0."""
    batcher = Batcher(QueueLimits())
    throughput: Throughput = batcher.throughput
    for number in range(100):
        throughput.stepped(10, True, (number - 99) * 0.05)
        throughput.finished(5, 10)
    return batcher


def test_room_that_is_kept_for_a_request_is_nobody_elses() -> None:
    batcher, request = Batcher(LIMITS), Request(num_sentences=5, num_tokens=50)
    batcher.expect(request, 0.0)
    assert refusal(batcher, Request(4, 40)).reason is Refusal.QUEUE_SENTENCES
    with pytest.raises(QueueFull, match="5 sentences"):
        batcher.add(sentences_of("another", 4), 0.0)
    batcher.expect(Request(3, 30), 0.0)
    batcher.add(sentences_of(request, 5), 0.0)
    assert batcher.num_sentences == 5


def test_room_that_a_request_did_not_need_is_given_up() -> None:
    batcher, request = Batcher(LIMITS), Request(8, 80)
    batcher.expect(request, 0.0)
    batcher.add(sentences_of(request, 2), 0.0)
    batcher.add(sentences_of("another", 6), 0.0)
    assert batcher.num_sentences == 8


@pytest.mark.parametrize("limits", [LIMITS, QueueLimits(max_sentences=1000, max_tokens=80)])
def test_who_comes_again_until_there_is_room_leaves_half_of_it_to_others(
    limits: QueueLimits,
) -> None:
    batcher = Batcher(limits)
    batcher.add(sentences_of("patient", 4), 0.0, tokens_to_come=None)
    with pytest.raises(QueueFull):
        batcher.add(sentences_of("patient", 1), 0.0, tokens_to_come=None)
    batcher.add(sentences_of("another", 4), 0.0)
    assert batcher.num_sentences == 8


def test_who_comes_again_may_fill_an_empty_queue() -> None:
    batcher = Batcher(LIMITS)
    batcher.add(sentences_of("patient", 8), 0.0, tokens_to_come=None)
    assert batcher.num_sentences == 8


def test_a_request_that_was_longer_than_foreseen_needs_room_for_the_rest() -> None:
    batcher, request = Batcher(LIMITS), Request(2, 20)
    batcher.expect(request, 0.0)
    batcher.add(sentences_of("another", 5), 0.0)
    with pytest.raises(QueueFull):
        batcher.add(sentences_of(request, 4), 0.0)
    batcher.expect(Request(3, 30), 0.0)  # nothing is kept for who was refused


def test_a_request_that_is_forgotten_makes_room_once() -> None:
    batcher, request = Batcher(LIMITS), Request(8, 80)
    for forgotten in (request, "somebody who was never expected"):
        batcher.forget(forgotten)
    batcher.expect(request, 0.0)
    for _ in range(2):
        batcher.forget(request)
    batcher.expect(Request(8, 80), 0.0)
    refusal(batcher, Request(1, 10))


def test_room_in_tokens_is_kept_too() -> None:
    batcher = Batcher(QueueLimits(max_sentences=1000, max_tokens=100))
    batcher.expect(Request(60, 600), 0.0)
    assert refusal(batcher, Request(41, 410)).reason is Refusal.QUEUE_TOKENS


def test_more_than_an_empty_queue_holds_is_left_to_be_read_and_refused_for_good() -> None:
    batcher = Batcher(LIMITS)
    batcher.expect(Request(9, 90), 0.0)
    batcher.expect(Request(8, 80), 0.0)


def test_a_deadline_that_cannot_be_met_is_refused_before_anything_is_read(
    experienced: Batcher,
) -> None:
    experienced.add(sentences_of("before", 20), 0.0)
    error = refusal(experienced, Request(10, 100, deadline=2.9))
    assert error.reason is Refusal.DEADLINE
    assert error.retry_after_seconds == pytest.approx(0.1)
    loads = (Load(16, 4, 1, num_tokens=50),)
    refusal(experienced, Request(10, 100, deadline=3.1), loads)
    experienced.expect(Request(10, 100, deadline=3.1), 0.0)


def test_who_is_refused_keeps_no_room(experienced: Batcher) -> None:
    for _ in range(1000):
        refusal(experienced, Request(100, 1000, deadline=0.1))
    experienced.expect(Request(QueueLimits().max_sentences, 1), 0.0)


def test_those_who_are_being_read_are_work_to_come(experienced: Batcher) -> None:
    read = Request(20, 200)
    experienced.expect(read, 0.0)
    refusal(experienced, Request(10, 100, deadline=1.9))
    experienced.expect(Request(10, 100, deadline=2.1), 0.0)
    experienced.forget(read)
    experienced.expect(Request(5, 50, deadline=1.1), 0.0)
