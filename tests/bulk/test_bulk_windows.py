"""Windows: bounded, in order, and no more of them than may be under way."""

from collections.abc import Iterator
from contextlib import closing
from threading import Barrier, Event

import pytest

from service.client.bulk.lines import Line, Place
from service.client.bulk.windows import MAX_WINDOW_BYTES, MAX_WINDOW_LINES, in_order, windows


def lines(*sizes: int) -> list[Line]:
    return [Line(number, b"x" * size, b"\n", Place()) for number, size in enumerate(sizes, 1)]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], []),
        ([1] * 5, [5]),
        ([1] * (2 * MAX_WINDOW_LINES + 3), [MAX_WINDOW_LINES, MAX_WINDOW_LINES, 3]),
        ([MAX_WINDOW_BYTES] * 2 + [1], [1, 1, 1]),
        ([MAX_WINDOW_BYTES - 2, 1, 1, 1], [3, 1]),
        ([1, 3 * MAX_WINDOW_BYTES, 1], [1, 1, 1]),
    ],
)
def test_a_window_has_few_lines_and_few_bytes(sizes: list[int], expected: list[int]) -> None:
    found = [*windows(lines(*sizes))]
    assert [len(window) for window in found] == expected
    assert sum(found, []) == lines(*sizes)


@pytest.mark.parametrize("at_once", [1, 3, 8])
def test_no_more_is_read_than_may_be_under_way(at_once: int) -> None:
    read = 0

    def items() -> Iterator[int]:
        nonlocal read
        for item in range(1, 101):
            read = item
            yield item

    with closing(in_order(str, items(), at_once)) as results:
        for taken, result in enumerate(results, start=1):
            assert result == str(taken)
            assert read <= taken + at_once - 1
    assert read == 100


def test_as_many_are_under_way_as_may_be() -> None:
    together = Barrier(4, timeout=30)
    with closing(in_order(lambda item: together.wait() >= 0, range(8), 4)) as results:
        assert [*results] == [True] * 8


def test_results_keep_their_order_whichever_is_first() -> None:
    last = Event()

    def work(item: int) -> int:
        if item == 3:
            last.set()
        assert last.wait(30)
        return item

    with closing(in_order(work, range(4), 4)) as results:
        assert [*results] == [0, 1, 2, 3]


def test_a_failure_comes_in_its_turn_and_nothing_is_begun_after_it() -> None:
    begun = list[int]()

    def work(item: int) -> int:
        begun.append(item)
        return 1 // (2 - item)

    with closing(in_order(work, range(100), 1)) as results:
        assert next(results) == 0 and next(results) == 1
        with pytest.raises(ZeroDivisionError):
            next(results)
    assert begun == [0, 1, 2]
