"""What comes out of a translator.

What every sentence has one of is a named tuple: that is made in a quarter of the time.
"""

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.decoding import FinishReason
from service.text import Token
from service.text.alignment import Alignment
from service.text.protect import RestoredPart

END_OF_SENTENCE: Final = "</s>"


@dataclass(frozen=True, slots=True, eq=False)
class Attention:
    """Where the model looked in the source (columns) for each target token (rows).

    source_tokens: all of the sentence; the last is the end of the sentence, with an empty span.
        Spans index the caller's text.
    target_tokens: without the end of the sentence. Spans index `Translation.text`, with the
        hypothesis at hand in the place of the first one.
    weights: (target_tokens, source_tokens) float32; rows sum to 1.
    heads: (heads, target_tokens, source_tokens) float32, whose mean the weights are; None unless
        `DecodingOptions.attention_heads` asked for it.
    """

    source_tokens: tuple[Token, ...]
    target_tokens: tuple[Token, ...]
    weights: NDArray[np.float32]
    heads: NDArray[np.float32] | None = None

    @property
    def num_weights(self) -> int:
        """Those of the heads, or else of their mean."""
        return self.weights.size if self.heads is None else self.heads.size


@dataclass(frozen=True, slots=True, eq=False)
class TokenScores:
    """The natural logarithm of the probability of each token, given those before.

    tokens: without the end of the sentence; spans as in `Attention.target_tokens`.
    log_probs: (tokens,) float32, and one more for the end of the sentence if the model chose it.
    """

    tokens: tuple[Token, ...]
    log_probs: NDArray[np.float32]


class TranslatedHypothesis(NamedTuple):
    """One way to translate a sentence; numbers as in `decoding.Hypothesis`.

    token_count: target tokens, with the end of the sentence if the model chose it.
    attention: None unless `DecodingOptions.attention` asked for it.
    alignment, token_scores: None unless `Extras` asked for them; spans of words as of tokens.
    kept: what came out as it was, or as a term's translation, in the order of the text.
    """

    text: str
    log_prob: float
    score: float
    finish_reason: FinishReason
    token_count: int
    attention: Attention | None = None
    alignment: Alignment | None = None
    token_scores: TokenScores | None = None
    kept: tuple[RestoredPart, ...] = ()

    def moved(self, begin: int) -> "TranslatedHypothesis":
        """The same where it begins so many characters later."""
        if not (begin and (self.attention or self.alignment or self.token_scores or self.kept)):
            return self
        attention, scores = self.attention, self.token_scores
        if attention:
            tokens = _moved(attention.target_tokens, begin)
            attention = replace(attention, target_tokens=tokens)
        if scores:
            scores = replace(scores, tokens=_moved(scores.tokens, begin))
        alignment = self.alignment.moved(0, begin) if self.alignment else None
        kept = tuple(part.moved(0, begin) for part in self.kept)
        return self._replace(
            attention=attention, alignment=alignment, token_scores=scores, kept=kept
        )


class SentenceResult(NamedTuple):
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


class Translation(NamedTuple):
    """The translation of one text; one without sentences passed through, and is the text itself.

    kept: what came out as it was, or as a term's translation, in the order of the translation; of
        a text that passed through, nothing is named.
    """

    text: str
    sentences: tuple[SentenceResult, ...] = ()
    kept: tuple[RestoredPart, ...] = ()

    @property
    def passed_through(self) -> bool:
        return not self.sentences


@dataclass(frozen=True, slots=True, eq=False)
class PairScore:
    """What a model thinks of a given translation; numbers as in `decoding.Hypothesis`.

    attention: None unless it was asked for; spans index the two texts.
    """

    log_prob: float
    score: float
    source_token_count: int
    token_scores: TokenScores
    attention: Attention | None


def _moved(tokens: tuple[Token, ...], begin: int) -> tuple[Token, ...]:
    return tuple(
        Token(token.id, token.piece, token.start + begin, token.end + begin) for token in tokens
    )
