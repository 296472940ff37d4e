"""What came of the calls, in numbers."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.timing import percentile


@dataclass(frozen=True, slots=True)
class Outcome:
    """One call. Times are in seconds after the start; `code` is gRPC's, "OK" for an answer."""

    due: float
    sent: float
    answered: float
    num_contents: int
    code: str

    @property
    def is_refused(self) -> bool:
        """Whether the server had no room or no time for it."""
        return self.code == "RESOURCE_EXHAUSTED"


@dataclass(frozen=True, slots=True)
class Report:
    """All times are in milliseconds from when a call was due; sentences are contents.

    offered, goodput: sentences per second that were asked for, and that were answered before the
        load ended: what a server owes from then on is not to its credit.
    refused_p50, refused_p99: from when a call was sent to RESOURCE_EXHAUSTED.
    late_p99: by how much calls were sent too late: the generator's own share of the latencies,
        which must be small for them to mean anything.
    cpu_seconds: processor time of the generator from the first call to the last answer: what it
        takes from a server on the same cores.
    codes: number of calls by gRPC code.
    """

    seconds: float
    sentences: int
    offered: float
    goodput: float
    mean: float
    p50: float
    p95: float
    p99: float
    refused_p50: float
    refused_p99: float
    late_p99: float
    cpu_seconds: float
    codes: Mapping[str, int]

    @classmethod
    def of(cls, outcomes: Sequence[Outcome], seconds: float, cpu_seconds: float = 0.0) -> "Report":
        answered = [outcome for outcome in outcomes if outcome.code == "OK"]
        latencies = [1e3 * (outcome.answered - outcome.due) for outcome in answered]
        refused = [
            1e3 * (outcome.answered - outcome.sent) for outcome in outcomes if outcome.is_refused
        ]
        in_time = sum(one.num_contents for one in answered if one.answered <= seconds)
        return cls(
            seconds=seconds,
            sentences=sum(outcome.num_contents for outcome in answered),
            offered=sum(outcome.num_contents for outcome in outcomes) / seconds,
            goodput=in_time / seconds,
            mean=sum(latencies) / len(latencies) if latencies else float("nan"),
            p50=percentile(latencies, 50),
            p95=percentile(latencies, 95),
            p99=percentile(latencies, 99),
            refused_p50=percentile(refused, 50),
            refused_p99=percentile(refused, 99),
            late_p99=percentile([1e3 * (one.sent - one.due) for one in outcomes], 99),
            cpu_seconds=cpu_seconds,
            codes=dict(Counter(outcome.code for outcome in outcomes)),
        )

    def columns(self) -> dict[str, float | str]:
        """For a table."""
        return {
            "offered/s": self.offered,
            "goodput/s": self.goodput,
            "p50 ms": self.p50,
            "p95 ms": self.p95,
            "p99 ms": self.p99,
            "late p99 ms": self.late_p99,
            "failed": str(self.failed),
        }

    @property
    def failed(self) -> int:
        """Calls that got an error instead of an answer."""
        return sum(self.codes.values()) - self.codes.get("OK", 0)
