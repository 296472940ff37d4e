"""A progress that nobody looks at before the end."""

from dataclasses import dataclass, field

from service.client.bulk.totals import Totals


@dataclass
class Told:
    """What a run tells."""

    lines: list[str] = field(default_factory=list)
    shown: list[tuple[int, int]] = field(default_factory=list)

    def show(self, done: int, total: int, totals: Totals) -> None:
        self.shown.append((done, total))

    def say(self, line: str) -> None:
        self.lines.append(line)

    def close(self) -> None:
        pass
