"""What a proof consists of: limits, and checks that hold to them or not."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from export.tables import markdown_table

_HEADINGS = ("precision", "check", "found", "limit", "")


@dataclass(frozen=True, slots=True)
class Tolerances:
    """How far graphs may be from their network."""

    value: float = 1e-3
    """Of a log-probability, a state or an attention weight in float32."""
    half_value: float = 0.05
    """The same in float16, which keeps ten bits of a number."""
    tie: float = 1e-4
    """Between the log-probabilities of two translations, in torch."""
    same_share: float = 0.999
    """Of sentences that are translated the same; a single one may always differ."""
    bleu: float = 0.4
    """That int8 and float16 may lose."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at; `limit` is empty for what can't fail."""

    precision: str
    name: str
    found: str
    limit: str = ""
    passed: bool = True

    @property
    def fault(self) -> str:
        """What is wrong, if it isn't passed."""
        return f"{self.precision}: {self.name}: {self.found}, the limit is {self.limit}"


def faults_of(checks: Iterable[Check]) -> list[str]:
    """Of the checks that aren't passed."""
    return [check.fault for check in checks if not check.passed]


def table(checks: Sequence[Check]) -> str:
    """The checks in Markdown."""
    return markdown_table(_HEADINGS, [_row(check) for check in checks])


def _row(check: Check) -> tuple[str, ...]:
    verdict = "" if not check.limit else "ok" if check.passed else "FAILED"
    return check.precision, check.name, check.found, check.limit, verdict
