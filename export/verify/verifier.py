"""One precision of a bundle against its network: each check once, and a report for the manifest."""

import math
from dataclasses import asdict
from typing import Any

import numpy as np

from export.verify.checks import Check, Tolerances
from export.verify.translations import (
    EvalSet,
    Translations,
    differences,
    tokenizers_of,
    translate,
)
from export.verify.values import value_error
from service.bundle import Bundle
from service.decoding import StepModel
from service.session import Graphs, OnnxModel, Shortlists
from training.model import Translator
from training.step_model import TorchStepModel

BEAM_SIZES = (1, 4)
MAX_ROWS = 64
OTHER_MAX_ROWS = {1: "alone", 7: "in flight, 7 rows"}
"""Other batches in which a sentence must become the same."""

Report = dict[str, Any]


class Verifier:
    """Torch's translations of the sentences, and the checks of the graphs held against them."""

    def __init__(
        self,
        bundle: Bundle,
        model: Translator,
        attention_layer: int,
        sentences: EvalSet,
        tolerances: Tolerances,
    ) -> None:
        num_heads = bundle.manifest.attention.num_heads
        self.checks: list[Check] = []
        self._model = model
        self._sentences = sentences
        self._tolerances = tolerances
        self._heads = slice(attention_layer * num_heads, (attention_layer + 1) * num_heads)
        self._reference = TorchStepModel(model, self._heads)
        self._tokenizers = tokenizers_of(bundle)
        self._max_length = bundle.manifest.search.max_length
        self._expected = {
            width: self._translations(self._reference, width, MAX_ROWS) for width in BEAM_SIZES
        }

    def check(self, graphs: Graphs, precision: str) -> Report:
        """Hold a precision against torch: float32 to its values and translations, what has fewer
        bits to its BLEU. In none may a translation depend on its neighbours.
        """
        report = {} if precision == "int8" else self._check_values(graphs, precision)
        found = {width: self._translate(graphs, width) for width in BEAM_SIZES}
        for width in BEAM_SIZES:
            if precision == "fp32":
                report[f"beam_{width}"] = self._check_sameness(precision, width, found[width])
            else:
                report[f"beam_{width}"] = self._check_bleu(precision, width, found[width])
            if graphs.shortlists:
                report[f"beam_{width}"] |= self._shortlist_cost(graphs, graphs.shortlists, width)
        report |= self._check_independence(graphs, precision, found[1])
        self._add(precision, "speed", f"{found[1].sentences_a_second:,.0f} sentences/s, one thread")
        return report

    def _check_values(self, graphs: Graphs, precision: str) -> Report:
        limits = {"fp32": self._tolerances.value, "fp16": self._tolerances.half_value}
        error, limit = value_error(self._model, graphs, self._heads), limits[precision]
        found = f"differ from torch's by {error:.2g}"
        self._add(precision, "values", found, f"{limit:g}", error <= limit)
        return {"max_value_error": error}

    def _check_sameness(self, precision: str, width: int, found: Translations) -> Report:
        expected = self._expected[width]
        self._check_share(precision, f"beam {width}, as torch", expected, found)
        differing = differences(self._reference, expected, found)
        widest = max((difference.gap for difference in differing), default=0.0)
        tie = self._tolerances.tie
        self._add(
            precision, f"beam {width}, ties", f"apart by {widest:.2g}", f"{tie:g}", widest <= tie
        )
        return {"differing": [asdict(difference) for difference in differing]}

    def _check_bleu(self, precision: str, width: int, found: Translations) -> Report:
        expected, limit = self._expected[width], self._tolerances.bleu
        loss = expected.score.bleu - found.score.bleu
        told = f"{found.score.bleu:.2f}, torch {expected.score.bleu:.2f}"
        self._add(precision, f"beam {width}, BLEU", told, f"loss of {limit:g}", loss <= limit)
        return {
            "bleu": found.score.bleu,
            "torch_bleu": expected.score.bleu,
            "signature": found.score.signature,
            "same_as_torch": expected.same_share(found),
        }

    def _check_independence(self, graphs: Graphs, precision: str, together: Translations) -> Report:
        report: Report = {}
        for max_rows, name in OTHER_MAX_ROWS.items():
            apart = self._translate(graphs, 1, max_rows)
            self._check_share(precision, f"{name}, as in {MAX_ROWS} rows", together, apart)
            report[f"same_in_{max_rows}_rows"] = together.same_share(apart)
        return report

    def _shortlist_cost(self, graphs: Graphs, shortlists: Shortlists, width: int) -> Report:
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
        model = OnnxModel(graphs, max_rows)
        return self._translations(model, width, max_rows, shortlist=shortlist)

    def _translations(
        self, model: StepModel, width: int, max_rows: int, *, shortlist: bool = True
    ) -> Translations:
        return translate(
            model,
            self._tokenizers,
            self._sentences,
            width,
            max_rows,
            max_length=self._max_length,
            shortlist=shortlist,
        )

    def _check_share(
        self, precision: str, name: str, expected: Translations, found: Translations
    ) -> None:
        share, limit = expected.same_share(found), self._tolerances.same_share
        allowed = max(1, math.floor((1 - limit) * len(found.hypotheses)))
        passed = len(expected.differing(found)) <= allowed
        self._add(precision, name, f"{share:.2%} the same", f"{limit:.1%}", passed)

    def _add(
        self, precision: str, name: str, found: str, limit: str = "", passed: bool = True
    ) -> None:
        self.checks.append(Check(precision, name, found, limit, passed))
