"""Long work on one text, which its caller may want to end before it is done."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Check = Callable[[], None]
"""Raises if the work should end; called every millisecond or so, from the thread that works."""

_Item = TypeVar("_Item")
_ITEMS = 64


def go_on() -> None:
    """The check of work that nobody ends."""


def checked(items: Iterable[_Item], check: Check) -> Iterator[_Item]:
    """The items, with a check before every 64th."""
    for number, item in enumerate(items):
        if number % _ITEMS == 0:
            check()
        yield item
