"""Runs that take turns, and what their times say."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median


def alternate(runs: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Seconds of every run in every round: A B A B, so that what slows the machine slows both."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            started = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - started)
    return seconds


@dataclass(frozen=True, slots=True)
class Ratio:
    """One system's measure over another's, round by round."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, numerators: Sequence[float], denominators: Sequence[float]) -> "Ratio":
        ratios = [a / b for a, b in zip(numerators, denominators, strict=True)]
        return cls(median(ratios), min(ratios), max(ratios))

    def values(self, name: str) -> dict[str, float | str]:
        """As columns of a table."""
        return {name: self.median, "spread": f"{self.low:.2f}-{self.high:.2f}"}


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that `percent` of all values don't exceed; NaN of none."""
    if not values:
        return float("nan")
    ordered = sorted(values)
    # As a whole number of values, so that 99 % of 100 is not one more by rounding.
    rank = -int(-(percent * len(ordered)) // 100)
    return ordered[max(0, min(rank, len(ordered)) - 1)]
