"""What there is to see of a translation, free of the protocol: lines of words, and their weights.

A sentence is shown word by word and piece by piece, as a `View` each. The weight of two words is
what the tokens of the target word gave to all of the source word's, on average (as in Garg et al.
2019, and in the alignment that the server makes):

                 rou   ges                    rouges
    red          .8    .4             red       .6
    cars         .1    .3             cars      .2
    </s>         .1    .3             </s>      .2
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from service.client.seeing.lines import Line, Part, Span, Token, line_of
from service.pb import translation_pb2 as pb

Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class View:
    """A hypothesis beside its source, in words or in pieces.

    weights: (seen target parts, seen source parts); each row sums to 1.
    log_probs: of the seen target parts, and of the end of the sentence if the model chose it.
    pairs: (source part, target part) among those seen, of the hard alignment; none for pieces.
    """

    source: Line
    target: Line
    weights: Matrix
    log_probs: tuple[float, ...]
    pairs: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class HypothesisView:
    """One way to translate a sentence; `is_cut`: a limit ended it, not the model."""

    text: str
    score: float
    log_prob: float
    is_cut: bool
    words: View
    pieces: View


@dataclass(frozen=True, slots=True)
class SentenceView:
    """A sentence with its hypotheses, the best first; without any, it passed through."""

    text: str
    model: str
    source_language: str
    target_language: str
    hypotheses: tuple[HypothesisView, ...] = ()


def sentence_views(content: str, translation: pb.Translation) -> Iterator[SentenceView]:
    """The sentences of a text whose answer has attention, token scores and alignments."""
    whole = [pb.Sentence(source=pb.Span(end=len(content)))]
    for sentence in translation.sentences or whole:
        text = content[sentence.source.begin : sentence.source.end]
        hypotheses = sentence.hypotheses
        yield SentenceView(
            text=text,
            model=f"{translation.model} {translation.model_version}".strip(),
            source_language=translation.source_language_code,
            target_language=translation.target_language_code,
            hypotheses=tuple(_hypothesis_view(text, sentence, one) for one in hypotheses),
        )


def seen(line: Line) -> list[Part]:
    """The parts of a line that weights are of."""
    return [part for part in line if part.is_seen]


def _hypothesis_view(
    source: str, sentence: pb.Sentence, hypothesis: pb.Hypothesis
) -> HypothesisView:
    alignment = hypothesis.alignment
    source_words = _spans(alignment.source_words, sentence.source.begin)
    target_words = _spans(alignment.target_words, sentence.target.begin)
    return HypothesisView(
        text=hypothesis.text,
        score=hypothesis.score,
        log_prob=hypothesis.log_prob,
        is_cut=hypothesis.finish_reason == pb.FINISH_REASON_LENGTH_LIMIT,
        words=_view(source, sentence, hypothesis, source_words, target_words),
        pieces=_view(source, sentence, hypothesis, [], []),
    )


def _view(
    text: str,
    sentence: pb.Sentence,
    hypothesis: pb.Hypothesis,
    source_words: Sequence[Span],
    target_words: Sequence[Span],
) -> View:
    attention = hypothesis.attention
    source = line_of(text, _tokens(attention.source_tokens, sentence.source.begin), source_words)
    tokens = _tokens(attention.target_tokens, sentence.target.begin)
    target = line_of(hypothesis.text, tokens, target_words)
    return View(
        source,
        target,
        _pooled(attention, seen(source), seen(target)),
        _log_probs(hypothesis.token_scores.log_probs, seen(target)),
        tuple(_pairs(hypothesis.alignment, seen(source), seen(target))) if target_words else (),
    )


def _tokens(tokens: Iterable[pb.Token], origin: int) -> list[Token]:
    return [Token(token.text, (token.begin - origin, token.end - origin)) for token in tokens]


def _spans(spans: Iterable[pb.Span], origin: int) -> list[Span]:
    return [(span.begin - origin, span.end - origin) for span in spans]


def _pooled(attention: pb.Attention, source: Sequence[Part], target: Sequence[Part]) -> Matrix:
    """Added over the tokens of a source part, and the mean over those of a target part."""
    width = attention.num_sources
    rows = [attention.weights[row * width :][:width] for row in range(attention.num_targets)]
    return tuple(
        tuple(
            sum(sum(row[column.first : column.end]) for row in rows[part.first : part.end])
            / (part.end - part.first)
            for column in source
        )
        for part in target
    )


def _log_probs(of_tokens: Sequence[float], target: Sequence[Part]) -> tuple[float, ...]:
    of_parts = [sum(of_tokens[part.first : part.end]) for part in target]
    num_tokens = target[-1].end if target else 0
    return (*of_parts, *of_tokens[num_tokens:])


def _pairs(
    alignment: pb.Alignment, source: Sequence[Part], target: Sequence[Part]
) -> Iterator[tuple[int, int]]:
    source_parts, target_parts = (
        {part.word: index for index, part in enumerate(parts) if part.word is not None}
        for parts in (source, target)
    )
    for pair in alignment.pairs:
        yield source_parts[pair.source], target_parts[pair.target]
