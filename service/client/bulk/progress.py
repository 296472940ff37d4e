"""How far a run is: a bar on a terminal, a line now and then elsewhere."""

import sys
import time
from typing import Any, Protocol

from service.client.bulk.totals import Totals

LINE_SECONDS = 30.0
_BAR = "{desc}: {percentage:3.0f}% |{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}{postfix}]"


class Progress(Protocol):
    """What is told of a file on the way, on standard error."""

    def show(self, done: int, total: int, totals: Totals) -> None:
        """done, total: bytes of the input."""

    def say(self, line: str) -> None:
        """A line that stays."""

    def close(self) -> None: ...


def progress_of(name: str) -> Progress:
    """For the standard error of this process."""
    return Bar(name) if sys.stderr.isatty() else Lines(name)


class Bar:
    """A bar with sentences a second, and the time left by the bytes that were read."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._bar: Any = None

    def show(self, done: int, total: int, totals: Totals) -> None:
        if self._bar is None:  # what was read before a restart took no time of this run's
            scale = {"initial": done, "total": total, "unit": "B", "unit_scale": True}
            self._bar = _tqdm()(desc=self._name, bar_format=_BAR, **scale)
        self._bar.set_postfix_str(f"{totals.sentences_per_second:.0f} sentences/s", refresh=False)
        self._bar.update(done - self._bar.n)

    def say(self, line: str) -> None:
        _tqdm().write(line, file=sys.stderr)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.refresh()
            self._bar.close()


class Lines:
    """A line every half a minute."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._begun = self._told = time.monotonic()
        self._initial: int | None = None

    def show(self, done: int, total: int, totals: Totals) -> None:
        if self._initial is None:
            self._initial = done
        now = time.monotonic()
        if now - self._told < LINE_SECONDS:
            return
        self._told, read = now, max(1, done - self._initial)
        left = _minutes((now - self._begun) * (total - done) / read)
        share = f"{done / max(1, total):.0%}, {totals.segments} lines"
        rate = f"{totals.sentences_per_second:.1f} sentences/s"
        self.say(f"{self._name}: {share}, {rate}, {left} left")

    def say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Nothing to take away."""


def _tqdm() -> Any:
    from tqdm import tqdm

    return tqdm


def _minutes(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"
