"""The knee of a server: how much load it takes before waiting outgrows what is gained."""

from collections.abc import Callable, Iterator, Sequence

from bench.load.report import Report

FRACTIONS = (0.1, 0.25, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.1)
"""Of the capacity."""


def climb(capacity: float, measure: Callable[[float], Report]) -> Iterator[tuple[float, Report]]:
    """The fractions of `capacity`, in sentences per second, and what was measured at each."""
    for fraction in FRACTIONS:
        yield fraction, measure(fraction * capacity)


def knee(reports: Sequence[Report]) -> Report:
    """The load with the most power: goodput over mean latency (Kleinrock 1979).

    Below it there is room, above it each further sentence costs all others more than it is worth.
    """
    return max(reports, key=lambda report: report.goodput / report.mean)
