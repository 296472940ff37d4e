"""What was decoded, as text: which of the hypotheses are worth returning."""

import numpy as np
import pytest

from service.bundle import Bundle
from service.decoding import FinishReason, Hypothesis
from service.text import Tokenizer
from service.translator import TextOptions
from service.translator.reader import Reader
from service.translator.writer import Writer


def hypothesis(ids: list[int]) -> Hypothesis:
    scores = np.full(len(ids) + 1, -0.5, np.float32)
    return Hypothesis(
        ids=tuple(ids),
        log_prob=float(scores.sum()),
        score=-0.5,
        finish_reason=FinishReason.END_OF_SENTENCE,
        token_log_probs=scores,
        attention=None,
    )


@pytest.mark.parametrize(
    ("found", "returned"),
    [
        (["", "Un homme.", "L'homme."], ["Un homme.", "L'homme."]),
        (["Un homme.", ""], ["Un homme."]),
        (["", ""], ["", ""]),
        ([""], [""]),
    ],
)
def test_an_empty_translation_is_returned_only_if_there_is_no_other(
    found: list[str], returned: list[str], bundle: Bundle
) -> None:
    source, target = (
        Tokenizer.from_bytes(bundle.tokenizer_bytes(side)) for side in ("source", "target")
    )
    [unit] = Reader(bundle.manifest, source).units(["A man."], TextOptions())
    writer = Writer(bundle.manifest, (source, target), no_break_spaces=False, attention=False)
    written = writer.hypotheses(unit, [hypothesis(target.encode(text)) for text in found])
    assert [each.text for each in written] == returned
