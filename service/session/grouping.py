"""Which newcomers to encode together."""

import numpy as np

from service.session.ancestry import Indices

_CALL_COST = 8
"""Of one encoder call, in tokens that could be encoded in that time."""


def groups_by_length(lengths: Indices) -> list[Indices]:
    """Cuts sentences of these lengths into groups so that padding and calls cost least in sum.

    The best cut of the sentences sorted by length, by dynamic programming: `best[i]` is the least
    cost of the first i, and `starts[i]` is where the last group of them begins.
    """
    order = np.argsort(-lengths, kind="stable")
    longest = lengths[order].tolist()
    best, starts = [0], [0]
    for end in range(1, len(longest) + 1):
        cost, start = min(
            (best[start] + _CALL_COST + (end - start) * longest[start], start)
            for start in range(end)
        )
        best.append(cost)
        starts.append(start)
    groups, end = [], len(longest)
    while end:
        groups.append(order[starts[end] : end])
        end = starts[end]
    return groups
