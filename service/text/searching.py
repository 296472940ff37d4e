"""Every match of a pattern in a long text, without holding up other threads.

A search of `re` keeps the interpreter to itself until it has found something, which takes a second
for a megabyte of nothing. Here it is many short ones, and it can be ended between them.
"""

import re
from collections.abc import Iterator

from service.text.checking import Check, go_on

_WINDOW = 2048
# A pattern may look so far ahead, beyond what it repeats without limit.
_LOOK_AHEAD = 256


def find_all(
    pattern: re.Pattern[str],
    text: str,
    start: int = 0,
    end: int | None = None,
    check: Check = go_on,
) -> Iterator[re.Match[str]]:
    """`pattern.finditer(text, start, end)`, in searches of two thousand characters each.

    The same as long as a match depends on no more than it holds and 256 characters behind it. Its
    time is linear if that of the pattern is: what reaches the end of a window is searched again in
    one twice as long.
    """
    limit = len(text) if end is None else end
    size = _WINDOW
    while start < limit:
        check()
        stop = min(start + size, limit)
        matches = pattern.finditer(text, start, min(stop + _LOOK_AHEAD, limit))
        start, size = stop, _WINDOW
        for match in matches:
            if match.start() >= stop:
                break
            if match.end() >= stop < limit:
                start, size = match.start(), 2 * (stop + _LOOK_AHEAD - match.start())
                break
            yield match
