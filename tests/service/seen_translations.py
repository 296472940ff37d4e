"""Answers written by hand, word by word, for what is drawn of them."""

from collections.abc import Iterable, Iterator, Sequence

from service.pb import translation_pb2 as pb


def tokens_of(text: str, pieces: Sequence[str], end: bool = False) -> list[pb.Token]:
    """The pieces in their places in a text, and the end of the sentence."""
    tokens, position = [], 0
    for piece in pieces:
        position = text.index(piece, position)
        tokens.append(pb.Token(text=piece, begin=position, end=position + len(piece)))
        position += len(piece)
    if end:
        tokens.append(pb.Token(text="</s>", begin=len(text), end=len(text)))
    return tokens


def answer_of(
    source: Sequence[str],
    target: Sequence[str],
    weights: Sequence[Sequence[float]],
    log_probs: Sequence[float] = (),
    pairs: Iterable[tuple[int, int]] = (),
) -> tuple[str, pb.Translation]:
    """A text of one sentence and its translation, both of words with pieces: "rou|ges".

    weights: (target pieces, source pieces + 1). log_probs: by default -0.5 for each target piece,
    and -0.25 for the end.
    """
    source_text, target_text = ("".join(words).replace("|", "") for words in (source, target))
    source_tokens, target_tokens = (
        tokens_of(text, [piece for word in words for piece in word.split("|") if piece.strip()])
        for text, words in ((source_text, source), (target_text, target))
    )
    source_tokens.append(pb.Token(text="</s>", begin=len(source_text), end=len(source_text)))
    hypothesis = pb.Hypothesis(
        text=target_text,
        score=-0.5,
        attention=pb.Attention(
            source_tokens=source_tokens,
            target_tokens=target_tokens,
            num_heads=1,
            num_targets=len(target_tokens),
            num_sources=len(source_tokens),
            weights=[weight for row in weights for weight in row],
        ),
        token_scores=pb.TokenScores(
            tokens=target_tokens, log_probs=log_probs or [*[-0.5] * len(target_tokens), -0.25]
        ),
        alignment=pb.Alignment(
            source_words=spans_of(source),
            target_words=spans_of(target),
            pairs=[pb.WordPair(source=s, target=t) for s, t in pairs],
        ),
    )
    return source_text, pb.Translation(
        translated_text=target_text,
        model="by-hand",
        source_language_code="en",
        target_language_code="fr",
        sentences=[
            pb.Sentence(
                source=pb.Span(end=len(source_text)),
                target=pb.Span(end=len(target_text)),
                hypotheses=[hypothesis],
            )
        ],
    )


def spans_of(words: Sequence[str]) -> Iterator[pb.Span]:
    """Where the words are that aren't blank."""
    position = 0
    for word in words:
        end = position + len(word.replace("|", ""))
        if word.strip():
            yield pb.Span(begin=position, end=end)
        position = end
