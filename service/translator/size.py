"""How large an answer is at least, and that it isn't larger than a message may be.

An attention of 250 tokens by 250 has a quarter of a megabyte: an answer that won't fit is given up
while it grows, before the rest of it is decoded and written.
"""

from collections.abc import Iterable, Sequence

from service.decoding import DecodingOptions
from service.errors import InvalidArgument
from service.translator.results import (
    Attention,
    PairScore,
    TokenScores,
    TranslatedHypothesis,
    Translation,
)

# An answer with no more is put together on the event loop, in a few milliseconds.
MAX_INLINE_BYTES = 1 << 14
# What is there besides text: fields that are never zero, and lengths.
_SENTENCE_BYTES = 6
_HYPOTHESIS_BYTES = 6
_TOKEN_BYTES = 2
_WEIGHT_BYTES = 4


def check_size(size: int, limit: int | None) -> None:
    """Raises InvalidArgument if an answer of at least `size` bytes is over a limit."""
    if limit is not None and size > limit:
        raise InvalidArgument(
            f"the answer has more than {limit} bytes, the limit; send fewer contents, ask for "
            "fewer hypotheses or leave out the attention"
        )


def least_bytes(translation: Translation) -> int:
    """What the message of a translation has at least, in bytes."""
    size = len(translation.text) + len(translation.sentences) * _SENTENCE_BYTES
    for sentence in translation.sentences:
        size += hypothesis_bytes(sentence.hypotheses)
    return size


def hypothesis_bytes(hypotheses: Iterable[TranslatedHypothesis]) -> int:
    """The same for the hypotheses of a sentence."""
    size = 0
    for hypothesis in hypotheses:
        size += len(hypothesis.text) + _HYPOTHESIS_BYTES + len(hypothesis.kept) * _TOKEN_BYTES
        if hypothesis.attention:
            size += _attention_bytes(hypothesis.attention)
        if hypothesis.token_scores:
            size += _scores_bytes(hypothesis.token_scores)
        if alignment := hypothesis.alignment:
            num_messages = sum(map(len, (alignment.source_words, alignment.target_words)))
            size += num_messages * _TOKEN_BYTES
    return size


def pair_bytes(score: PairScore) -> int:
    """The same for the score of a pair."""
    size = _scores_bytes(score.token_scores)
    return size + _attention_bytes(score.attention) if score.attention else size


def _attention_bytes(attention: Attention) -> int:
    num_tokens = sum(attention.weights.shape)
    return num_tokens * _TOKEN_BYTES + attention.num_weights * _WEIGHT_BYTES


def _scores_bytes(scores: TokenScores) -> int:
    return len(scores.tokens) * _TOKEN_BYTES + len(scores.log_probs) * _WEIGHT_BYTES


def fitting(
    sources: Sequence[Sequence[int]],
    options: DecodingOptions,
    limit: int | None,
    num_heads: int = 1,
) -> int:
    """How many of any of these sources have attention that fits in `limit` bytes; at least 1.

    num_heads: of the model, if all are wanted.
    """
    if not options.attention or limit is None:
        return max(1, len(sources))
    longest = max(1, max(map(len, sources), default=1))
    rows = options.num_hypotheses * options.length_limit(longest)
    rows *= num_heads if options.attention_heads else 1
    return max(1, limit // (rows * longest * _WEIGHT_BYTES))
