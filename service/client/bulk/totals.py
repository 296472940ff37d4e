"""What a run has done: counts, the lines that failed, and the report at its end."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from service.client.bulk.windows import Written
from service.pb import translation_pb2 as pb

# Line numbers that are kept for the report; every one is told when it fails.
MAX_FAILED_LINES = 100


@dataclass(slots=True)
class Totals:
    """Of all lines since the beginning, also across restarts.

    segments: lines. sentences: decoded ones. source_tokens, target_tokens: of those, of their best
    hypotheses. passed_through: segments that no model has seen. cut: sentences whose translation a
    limit ended. failed: segments without a translation; failed_lines: the first of their numbers;
    passing: the numbers of those that are to be tried again. seconds: at work.
    """

    segments: int = 0
    sentences: int = 0
    source_tokens: int = 0
    target_tokens: int = 0
    passed_through: int = 0
    cut: int = 0
    failed: int = 0
    failed_lines: list[int] = field(default_factory=list)
    passing: list[int] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, written: Written) -> None:
        self.segments += 1
        if written.translation is None:
            self._add_failed(written)
        else:
            self._add_translation(written.translation)

    def mend(self, written: Written) -> None:
        """A line of `passing` was tried again."""
        self.passing.remove(written.line.number)
        if written.translation is not None:
            self.failed -= 1
            self.failed_lines = [line for line in self.failed_lines if line != written.line.number]
            self._add_translation(written.translation)
        elif written.fault and written.fault.may_pass:
            self.passing.append(written.line.number)

    @property
    def sentences_per_second(self) -> float:
        return self.sentences / self.seconds if self.seconds else 0.0

    def report(self) -> Iterator[str]:
        """Lines of names and numbers, for people."""
        rate = f"{self.sentences_per_second:.1f} a second"
        for name, value in (
            ("segments", f"{self.segments}"),
            ("sentences", f"{self.sentences}, {rate}"),
            ("source tokens", f"{self.source_tokens}"),
            ("target tokens", f"{self.target_tokens}"),
            ("seconds", f"{self.seconds:.1f}"),
            ("passed through", f"{self.passed_through}"),
            ("cut", f"{self.cut}"),
            ("failed", f"{self.failed}{self._which_failed()}"),
        ):
            yield f"  {name:<14}  {value}"

    def _add_failed(self, written: Written) -> None:
        self.failed += 1
        if len(self.failed_lines) < MAX_FAILED_LINES:
            self.failed_lines.append(written.line.number)
        if written.fault and written.fault.may_pass:
            self.passing.append(written.line.number)

    def _add_translation(self, translation: pb.Translation) -> None:
        self.passed_through += translation.passed_through
        for sentence in translation.sentences:
            self._add_sentence(sentence)

    def _add_sentence(self, sentence: pb.Sentence) -> None:
        if not sentence.hypotheses:
            return
        best = sentence.hypotheses[0]
        self.sentences += 1
        self.source_tokens += sentence.source_token_count
        self.target_tokens += best.target_token_count
        self.cut += best.finish_reason == pb.FINISH_REASON_LENGTH_LIMIT

    def _which_failed(self) -> str:
        if not self.failed:
            return ""
        more = self.failed - len(self.failed_lines)
        numbers = ", ".join(map(str, self.failed_lines))
        which = f": line{'s' * (self.failed > 1)} {numbers}" + (f" and {more} more" if more else "")
        again = f"; {len(self.passing)} of them may come right another time" if self.passing else ""
        return which + again
