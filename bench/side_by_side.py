"""Several systems on the same sentences, in turns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from bench.systems import Ids, System, Timed, translate
from bench.timing import Ratio, alternate
from service.bundle import Bundle
from service.text import Tokenizer
from training.evaluate import corpus_bleu


@dataclass(frozen=True, slots=True)
class Measured:
    """What a system made of the sentences, and the seconds that each round took."""

    targets: Sequence[Ids]
    seconds: Sequence[float]

    def speed(self) -> dict[str, float | str]:
        """Columns; tokens are the target's, with EOS."""
        middle = median(self.seconds)
        num_tokens = sum(len(target) + 1 for target in self.targets)
        return {"sentences/s": len(self.targets) / middle, "tokens/s": num_tokens / middle}

    def quality(
        self, bundle: Bundle, references: Sequence[Sequence[str]] | None
    ) -> dict[str, float | str]:
        """A column where there are references."""
        if references is None:
            return {}
        tokenizer = Tokenizer.from_bytes(bundle.tokenizer_bytes("target"))
        texts = [tokenizer.decode(target) for target in self.targets]
        return {"BLEU": f"{corpus_bleu(texts, references).bleu:.2f}"}

    def times_as_fast(self, other: "Measured") -> Ratio:
        """How often this one would have been done while the other was, round by round."""
        return Ratio.of(other.seconds, self.seconds)


def measure(
    systems: Mapping[str, System], sources: Sequence[Ids], rounds: int
) -> dict[str, Measured]:
    """Every system once to warm up and to keep its translations, then `rounds` in turns."""
    targets = {name: translate(system, sources) for name, system in systems.items()}
    seconds = alternate({name: job(system, sources) for name, system in systems.items()}, rounds)
    return {name: Measured(targets[name], seconds[name]) for name in systems}


def job(system: Timed, sources: Sequence[Ids]) -> Callable[[], object]:
    """What is timed of a system."""
    prepared = system.prepare(sources)
    return lambda: system.run(prepared)


def encode(bundle: Bundle, texts: Sequence[str]) -> list[list[int]]:
    """Source ids with EOS."""
    tokenizer = Tokenizer.from_bytes(bundle.tokenizer_bytes("source"))
    return [[*tokenizer.encode(text), bundle.manifest.special_ids.eos] for text in texts]
