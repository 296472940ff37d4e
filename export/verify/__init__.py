"""Proof that graphs are their network: values, translations, and independence of the batch.

float32 graphs must give torch's values and torch's translations; those of float16 and int8 must
lose no more BLEU than allowed. All must translate a sentence the same whatever shares its batch. A
translation that differs is forgiven only as a *tie*: torch itself finds both within 1e-4 of each
other.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from export.verify.checks import Check, Tolerances, faults_of, table
from export.verify.translations import EvalSet, gaps, tokenizers_of, translate
from export.verify.verifier import BEAM_SIZES, MAX_ROWS, Verifier
from service.bundle import Bundle
from service.session import Graphs, OnnxModel
from training.model import Translator

__all__ = [
    "Check",
    "EvalSet",
    "ParityError",
    "Proof",
    "Tolerances",
    "gaps",
    "prove",
    "scores",
    "table",
    "translate",
    "verify",
]


class ParityError(Exception):
    """Graphs that must not be served; `faults` lists why."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = tuple(faults)


@dataclass(frozen=True, slots=True)
class Proof:
    """All checks of a bundle, and what they found as plain JSON."""

    checks: tuple[Check, ...]
    report: dict[str, Any]

    def require(self) -> None:
        """Raises ParityError, with all faults, unless every check is passed."""
        if faults := faults_of(self.checks):
            raise ParityError(faults)


def prove(
    bundle: Bundle,
    model: Translator,
    attention_layer: int,
    sentences: EvalSet,
    tolerances: Tolerances,
) -> Proof:
    """Hold every precision of a bundle against its network, on the CPU."""
    verifier = Verifier(bundle, model, attention_layer, sentences, tolerances)
    report: dict[str, Any] = {
        "sentences": len(sentences.sources),
        "tolerances": asdict(tolerances),
    }
    for precision in bundle.manifest.precisions:
        report[precision] = verifier.check(Graphs.load(bundle, precision), precision)
    return Proof(tuple(verifier.checks), report)


def verify(
    bundle: Bundle,
    model: Translator,
    attention_layer: int,
    sentences: EvalSet,
    tolerances: Tolerances,
) -> dict[str, Any]:
    """The report of a proof that holds.

    Raises:
        ParityError: with all faults.
    """
    proof = prove(bundle, model, attention_layer, sentences, tolerances)
    proof.require()
    return proof.report


def scores(bundle: Bundle, precision: str, sentences: EvalSet) -> dict[str, Any]:
    """BLEU of a precision by beam size, with sacreBLEU's signature, as plain JSON."""
    tokenizers = tokenizers_of(bundle)
    model = OnnxModel(Graphs.load(bundle, precision), MAX_ROWS)
    longest = bundle.manifest.search.max_length
    by_beam = (
        (width, translate(model, tokenizers, sentences, width, MAX_ROWS, max_length=longest))
        for width in BEAM_SIZES
    )
    return {f"beam_{width}": asdict(found.score) for width, found in by_beam}
