"""Requests take turns: nobody waits for all of somebody else's ten thousand sentences."""

import random
from collections.abc import Iterator
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.batching import Batcher, Load, QueueLimits, Sentence
from service.batching.line import LATE, PAGE_SIZE, QUANTUM, SMALL, Line
from service.decoding import DecodingOptions

ROOMY = QueueLimits(max_sentences=1 << 20, max_tokens=1 << 24, max_joining_tokens=1 << 20)


def request(group: object, *lengths: int) -> list[Sentence]:
    return [Sentence(range(length), DecodingOptions(), 0.0, group=group) for length in lengths]


def batcher_with(*requests: list[Sentence]) -> Batcher:
    batcher = Batcher(ROOMY)
    for sentences in requests:
        batcher.add(sentences, now=0.0)
    return batcher


def admitted(batcher: Batcher, max_rows: int = 1) -> list[Sentence]:
    return batcher.admit(Load(max_rows), (), now=0.0).joining


def in_turn(batcher: Batcher) -> Iterator[Sentence]:
    while batcher.num_sentences:
        yield from admitted(batcher)


def num_tokens(sentences: list[Sentence]) -> int:
    return sum(len(sentence.ids) for sentence in sentences)


def test_a_sentence_that_comes_later_does_not_wait_for_ten_thousand_of_another_request() -> None:
    batcher = batcher_with(request("many", *[16] * 10_000))
    admitted(batcher, max_rows=64)
    batcher.add([*request("one", 16)], now=0.0)
    assert [each.group for each in admitted(batcher)] == ["one"]


def test_a_request_that_is_not_small_waits_for_the_page_and_a_turn_of_each_other() -> None:
    batcher = batcher_with(*(request(name, *[16] * 2000) for name in "abc"))
    admitted(batcher)
    newcomer = request("new", *[16] * 20)
    batcher.add(newcomer, now=0.0)
    joined = list(in_turn(batcher))
    last = max(map(joined.index, newcomer))
    assert last < 2 * PAGE_SIZE


def test_large_requests_share_the_tokens_not_the_sentences() -> None:
    batcher = batcher_with(request("short", *[4] * 4000), request("long", *[32] * 500))
    shares = {"short": 0, "long": 0}
    for sentence in in_turn(batcher):
        shares[str(sentence.group)] += len(sentence.ids)
        if max(shares.values()) == 16_000:
            break
        assert abs(shares["short"] - shares["long"]) <= 32 * PAGE_SIZE
    assert min(shares.values()) >= 16_000 - 32 * PAGE_SIZE


def test_common_requests_are_served_whole_in_the_order_in_which_they_came() -> None:
    batcher = batcher_with(*(request(number, *[16] * 60) for number in range(10)))
    assert 60 * 16 <= QUANTUM
    first_page = [sentence.group for sentence in islice(in_turn(batcher), PAGE_SIZE)]
    assert sorted(map(str, first_page)) == [str(place // 60) for place in range(PAGE_SIZE)]


def test_the_sentences_of_many_requests_join_by_length() -> None:
    lengths = [random.Random(1).randrange(2, 30) for _ in range(200)]
    batcher = batcher_with(*(request(place, length) for place, length in enumerate(lengths)))
    joined = [len(sentence.ids) for sentence in in_turn(batcher)]
    assert joined == sorted(lengths, reverse=True)


def test_small_requests_overtake_a_page_only_so_far() -> None:
    batcher = batcher_with(page := request("page", 16, 16))
    admitted(batcher)
    for number in range(2 * LATE // SMALL):
        batcher.add(request(number, *[SMALL // 8] * 8), now=0.0)
    joined = list(in_turn(batcher))
    waits = [sentence in page for sentence in joined].index(True)
    assert num_tokens(joined[:waits]) == LATE
    assert [each.group for each in joined[:waits:8]] == [*range(LATE // SMALL)]


def test_a_request_with_a_share_in_the_page_does_not_get_ahead_of_it_by_asking_for_more() -> None:
    batcher = batcher_with(first := request("a", 16, 16), second := request("b", 16))
    assert admitted(batcher) == first[:1]
    batcher.add(request("a", 16), now=0.0)
    assert [*in_turn(batcher)][:2] == [first[1], *second]


def test_a_sentence_longer_than_a_turn_gets_its_turn() -> None:
    batcher = batcher_with(giant := request("giant", 3 * QUANTUM), request("other", *[16] * 2000))
    joined = list(in_turn(batcher))
    assert joined.index(giant[0]) <= 4 * QUANTUM // 16 + PAGE_SIZE


@pytest.mark.parametrize("small", [True, False])
def test_every_request_is_served_in_the_end_under_a_stream_of_others(small: bool) -> None:
    batcher = batcher_with(patient := request("patient", *[16] * 600))
    for number in range(6000):
        batcher.add(request(number, *[16] * (1 if small else 30)), now=0.0)
        joined = admitted(batcher, max_rows=1 if small else 30)
        patient = [sentence for sentence in patient if sentence not in joined]
        if not patient:
            break
    assert not patient


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10_000))
def test_counts_are_right_whoever_joins_leaves_or_is_looked_for(seed: int) -> None:
    rng = random.Random(seed)
    batcher, waiting, now = Batcher(ROOMY), set[Sentence](), 0.0
    for step in range(100):
        now += 0.1
        lengths = [rng.randrange(1, 200) for _ in range(rng.choice([1, 1, 5, 50]))]
        deadline = now + 0.5 if rng.random() < 0.2 else float("inf")
        group = rng.randrange(20)
        newcomers = [
            Sentence(range(length), DecodingOptions(beam_size=1 + group % 2), now, deadline, group)
            for length in lengths
        ]
        batcher.add(newcomers, now)
        waiting.update(newcomers)
        if step % 7 == 0:
            rng.choice(newcomers).future.cancel()
        admission = batcher.admit(Load(rng.choice([1, 16, 64])), (), now)
        waiting.difference_update(admission.joining, admission.gone)
        assert batcher.num_sentences == len(waiting)
        assert batcher.num_tokens == num_tokens(list(waiting))
    assert set(batcher.take_all()) == waiting


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([3, 600]))
def test_what_joins_before_a_newcomer_is_what_the_line_foresees(seed: int, size: int) -> None:
    rng = random.Random(seed)
    line = Line()
    for group in range(30):
        sentences = request(group, *(rng.randrange(1, 21) for _ in range(rng.choice([1, 20, 500]))))
        line.extend(sentences, num_tokens(sentences))
    for _ in range(rng.randrange(2, 600)):
        line.first()
        line.pop()
    newcomer = request("new", *[10] * size)
    foreseen = line.tokens_until("new", num_tokens(newcomer))
    line.extend(newcomer, num_tokens(newcomer))
    remaining, joined = set(newcomer), 0
    while remaining:
        sentence = line.first()
        line.pop()
        remaining.discard(sentence)
        joined += len(sentence.ids)
    # Up to a page is sorted by length, and a turn that was begun is not counted as begun.
    assert abs(foreseen - joined) <= 20 * PAGE_SIZE + QUANTUM
