"""What comes out of a translator."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.decoding import FinishReason
from service.text import Token


@dataclass(frozen=True, slots=True, eq=False)
class Attention:
    """Where the model looked in the source (columns) for each target token (rows).

    source_tokens: all of the sentence; the last is the end of the sentence, with an empty span.
        Spans index the caller's text.
    target_tokens: without the end of the sentence. Spans index `Translation.text`, with the
        hypothesis at hand in the place of the first one.
    weights: (target_tokens, source_tokens) float32; rows sum to 1.
    """

    source_tokens: tuple[Token, ...]
    target_tokens: tuple[Token, ...]
    weights: NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class TranslatedHypothesis:
    """One way to translate a sentence; numbers as in `decoding.Hypothesis`.

    token_count: target tokens, with the end of the sentence if the model chose it.
    attention: None unless `DecodingOptions.attention` asked for it.
    """

    text: str
    log_prob: float
    score: float
    finish_reason: FinishReason
    token_count: int
    attention: Attention | None


@dataclass(frozen=True, slots=True, eq=False)
class SentenceResult:
    """One unit of decoding, or a sentence with nothing to translate.

    source, target: half-open spans in the caller's text and in `Translation.text`.
    source_token_count: with the end of the sentence; 0 if it passed through.
    hypotheses: best first; none if it passed through.
    is_part: whether it is a part of a sentence that was too long for the model.
    """

    source: tuple[int, int]
    target: tuple[int, int]
    source_token_count: int
    hypotheses: tuple[TranslatedHypothesis, ...]
    is_part: bool = False

    @property
    def passed_through(self) -> bool:
        return not self.hypotheses


@dataclass(frozen=True, slots=True, eq=False)
class Translation:
    """The translation of one text; one without sentences passed through, and is the text itself."""

    text: str
    sentences: tuple[SentenceResult, ...] = ()

    @property
    def passed_through(self) -> bool:
        return not self.sentences
