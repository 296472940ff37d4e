"""Proof that graphs are their network: values, translations, and independence of the batch.

float32 graphs must give torch's values and torch's translations; int8 graphs must lose no more
BLEU than allowed, and must translate a sentence the same whatever shares its batch. A translation
that differs is forgiven only as a *tie*: torch itself finds both within 1e-4 of each other.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from export.verify.translations import EvalSet, Translations, differences, gaps, translate
from export.verify.values import value_error
from service.bundle import Bundle
from service.session import Graphs, OnnxModel, Shortlists
from service.text import Tokenizer
from training.model import Translator
from training.step_model import TorchStepModel

__all__ = ["EvalSet", "ParityError", "Tolerances", "gaps", "scores", "translate", "verify"]

BEAM_SIZES = (1, 4)
MAX_ROWS = 64
OTHER_MAX_ROWS = (1, 7)
"""Of the batches in which int8 must translate the same; 1 is each sentence alone."""

Expected = Mapping[int, Translations]
"""Torch's translations, by beam size."""


class ParityError(Exception):
    """Graphs that must not be served; `faults` lists why."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = tuple(faults)


@dataclass(frozen=True, slots=True)
class Tolerances:
    """How far graphs may be from their network."""

    value: float = 1e-3
    """Of a log-probability, a state or an attention weight in float32."""
    tie: float = 1e-4
    """Between the log-probabilities of two translations, in torch."""
    same_share: float = 0.999
    """Of sentences that are translated the same; a single one may always differ."""
    bleu: float = 0.4
    """That int8 may lose."""


def verify(
    bundle: Bundle,
    model: Translator,
    attention_layer: int,
    sentences: EvalSet,
    tolerances: Tolerances,
) -> dict[str, Any]:
    """Hold every precision of a bundle against its network, and return the report as plain JSON.

    Raises:
        ParityError: with all faults.
    """
    verifier = _Verifier(bundle, model, attention_layer, sentences, tolerances)
    report: dict[str, Any] = {
        "sentences": len(sentences.sources),
        "tolerances": asdict(tolerances),
    }
    for precision in bundle.manifest.precisions:
        check = verifier.check_int8 if precision == "int8" else verifier.check_float
        report[precision] = check(Graphs.load(bundle, precision), precision)
    if verifier.faults:
        raise ParityError(verifier.faults)
    return report


def scores(bundle: Bundle, precision: str, sentences: EvalSet) -> dict[str, Any]:
    """BLEU of a precision by beam size, with sacreBLEU's signature, as plain JSON."""
    tokenizer = Tokenizer.from_bytes(bundle.tokenizer_bytes("source"))
    model = OnnxModel(Graphs.load(bundle, precision), MAX_ROWS)
    by_beam = (
        (width, translate(model, tokenizer, sentences, width, MAX_ROWS)) for width in BEAM_SIZES
    )
    return {f"beam_{width}": asdict(found.score) for width, found in by_beam}


class _Verifier:
    """Torch's translations of the sentences, and the faults of the graphs held against them."""

    def __init__(
        self,
        bundle: Bundle,
        model: Translator,
        attention_layer: int,
        sentences: EvalSet,
        tolerances: Tolerances,
    ) -> None:
        num_heads = bundle.manifest.attention.num_heads
        self.faults: list[str] = []
        self._model = model
        self._sentences = sentences
        self._tolerances = tolerances
        self._heads = slice(attention_layer * num_heads, (attention_layer + 1) * num_heads)
        self._reference = TorchStepModel(model, self._heads)
        self._tokenizer = Tokenizer.from_bytes(bundle.tokenizer_bytes("source"))
        self._expected = {
            width: translate(self._reference, self._tokenizer, sentences, width, MAX_ROWS)
            for width in BEAM_SIZES
        }

    def check_float(self, graphs: Graphs, precision: str) -> dict[str, Any]:
        """Values and translations, which must be torch's."""
        error = value_error(self._model, graphs, self._heads)
        if not error <= self._tolerances.value:
            self._fault(precision, f"values differ by {error:.2g}", self._tolerances.value)
        report: dict[str, Any] = {"max_value_error": error}
        for width, expected in self._expected.items():
            found = self._translate(graphs, width)
            differing = differences(self._reference, expected, found)
            self._check_share(precision, f"beam {width} against torch", expected, found)
            if gaps := [d.gap for d in differing if d.gap > self._tolerances.tie]:
                text = f"beam {width}: {len(gaps)} translations differ by up to {max(gaps):.2g}"
                self._fault(precision, text, self._tolerances.tie)
            report[f"beam_{width}"] = {"differing": [asdict(d) for d in differing]}
        return report

    def check_int8(self, graphs: Graphs, precision: str) -> dict[str, Any]:
        """BLEU may be a little lower; translations alone and in company may not differ."""
        report: dict[str, Any] = {}
        for width, expected in self._expected.items():
            found = self._translate(graphs, width)
            loss = expected.score.bleu - found.score.bleu
            if not loss <= self._tolerances.bleu:
                self._fault(precision, f"beam {width} loses {loss:.2f} BLEU", self._tolerances.bleu)
            report[f"beam_{width}"] = {
                "bleu": found.score.bleu,
                "torch_bleu": expected.score.bleu,
                "signature": found.score.signature,
                "same_as_torch": expected.same_share(found),
            }
            if graphs.shortlists:
                report[f"beam_{width}"] |= self._shortlist_cost(graphs, graphs.shortlists, width)
        together = self._translate(graphs, 1)
        for max_rows in OTHER_MAX_ROWS:
            apart = self._translate(graphs, 1, max_rows)
            self._check_share(precision, f"{max_rows} against {MAX_ROWS} rows", together, apart)
            report[f"same_in_{max_rows}_rows"] = together.same_share(apart)
        return report

    def _shortlist_cost(
        self, graphs: Graphs, shortlists: Shortlists, width: int
    ) -> dict[str, float]:
        """What the whole vocabulary would give, and which share of its words are listed."""
        whole = self._translate(graphs, width, shortlist=False)
        lists = shortlists.draw_up(whole.source_ids)
        used = [[*hypothesis.ids, self._reference.eos_id] for hypothesis in whole.hypotheses]
        on_list = [
            np.isin(ids, np.append(shortlists.common, own))
            for ids, own in zip(used, lists, strict=True)
        ]
        return {
            "bleu_of_whole_vocabulary": whole.score.bleu,
            "words_on_shortlist": float(np.concatenate(on_list).mean()),
            "own_words_mean": float(np.mean([len(own) for own in lists])),
        }

    def _translate(
        self, graphs: Graphs, width: int, max_rows: int = MAX_ROWS, *, shortlist: bool = True
    ) -> Translations:
        return translate(
            OnnxModel(graphs, max_rows),
            self._tokenizer,
            self._sentences,
            width,
            max_rows,
            shortlist=shortlist,
        )

    def _check_share(
        self, precision: str, what: str, expected: Translations, found: Translations
    ) -> None:
        allowed = max(1, math.floor((1 - self._tolerances.same_share) * len(found.hypotheses)))
        if len(expected.differing(found)) > allowed:
            text = f"{what}: {expected.same_share(found):.2%} are the same"
            self._fault(precision, text, self._tolerances.same_share)

    def _fault(self, precision: str, text: str, limit: float) -> None:
        self.faults.append(f"{precision}: {text}, the limit is {limit:g}")
