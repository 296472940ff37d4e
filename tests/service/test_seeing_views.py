"""What there is to see of a translation: every character once, and weights that add up."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from service.client.local import LocalClient
from service.client.seeing.lines import Line, Token, line_of
from service.client.seeing.views import SentenceView, View, seen, sentence_views
from service.pb import translation_pb2 as pb
from tests.service.seen_translations import answer_of

TEXTS = ["Two young women are walking. A man!", "naïve 東京 café 🙂 42 times", "🙂 42", ""]


@pytest.fixture(scope="module")
def answers(models: Path) -> list[tuple[str, pb.Translation]]:
    request = pb.TranslateRequest(
        contents=TEXTS,
        model="tiny-transformer",
        include_attention=True,
        include_alignment=True,
        include_token_scores=True,
        options=pb.DecodingOptions(beam_size=3, num_hypotheses=3),
    )
    with LocalClient(models) as client:
        return list(zip(TEXTS, client.translate(request).translations, strict=True))


def written(line: Line) -> str:
    return "".join(part.text for part in line if not part.is_ghost)


def texts(line: Line) -> list[str]:
    return [part.text for part in seen(line)]


def views_of(sentence: SentenceView) -> list[tuple[str, View]]:
    return [(one.text, view) for one in sentence.hypotheses for view in (one.words, one.pieces)]


def pooled(attention: pb.Attention, source: Line, target: Line) -> np.ndarray:
    weights = np.reshape(attention.weights, (attention.num_targets, attention.num_sources))
    rows = [weights[part.first : part.end].mean(axis=0) for part in seen(target)]
    return np.array([[row[p.first : p.end].sum() for p in seen(source)] for row in rows])


def test_each_character_of_a_text_is_in_one_place_of_its_line(
    answers: Sequence[tuple[str, pb.Translation]],
) -> None:
    for answer in answers:
        for sentence in sentence_views(*answer):
            for text, view in views_of(sentence):
                assert written(view.source) == sentence.text
                assert written(view.target) == text


def test_words_share_the_weights_of_their_tokens(
    answers: Sequence[tuple[str, pb.Translation]],
) -> None:
    for text, translation in answers:
        for sentence, asked in zip(
            sentence_views(text, translation), translation.sentences, strict=False
        ):
            for shown, hypothesis in zip(sentence.hypotheses, asked.hypotheses, strict=True):
                for view in (shown.words, shown.pieces):
                    expected = pooled(hypothesis.attention, view.source, view.target)
                    assert np.allclose(np.array(view.weights), expected)
                    assert sum(view.log_probs) == pytest.approx(hypothesis.log_prob, abs=1e-3)


def test_a_pair_of_words_is_what_the_server_aligned(
    answers: Sequence[tuple[str, pb.Translation]],
) -> None:
    text, translation = answers[0]
    for sentence, asked in zip(
        sentence_views(text, translation), translation.sentences, strict=True
    ):
        alignment, view = asked.hypotheses[0].alignment, sentence.hypotheses[0].words
        assert len(view.pairs) == len(alignment.pairs) > 0
        for (source, target), pair in zip(view.pairs, alignment.pairs, strict=True):
            span = alignment.source_words[pair.source]
            assert texts(view.source)[source] == text[span.begin : span.end]
            span = alignment.target_words[pair.target]
            spoken = translation.translated_text[span.begin : span.end]
            assert texts(view.target)[target] == spoken


def test_what_went_past_the_model_is_shown_as_it_was(
    answers: Sequence[tuple[str, pb.Translation]],
) -> None:
    (emoji,) = sentence_views(*answers[2])
    assert (emoji.text, emoji.hypotheses) == ("🙂 42", ())


def test_weights_of_two_pieces_by_hand() -> None:
    answer = answer_of(["red", " ", "cars"], ["rou|ges"], [[0.8, 0.1, 0.1], [0.4, 0.3, 0.3]])
    ((hypothesis,),) = (sentence.hypotheses for sentence in sentence_views(*answer))
    assert texts(hypothesis.words.source) == ["red", "cars", "</s>"]
    assert np.allclose(hypothesis.words.weights, [[0.6, 0.2, 0.2]])
    assert hypothesis.words.log_probs == (-1.0, -0.25)
    assert texts(hypothesis.pieces.target) == ["rou", "ges"]


def test_the_bytes_of_a_character_are_one_part() -> None:
    spelt = [Token("<0xE6>", (2, 3)), Token("<0x9D>", (2, 3)), Token("<0xB1>", (2, 3))]
    line = line_of("a 東!", [Token("a", (0, 1)), *spelt, Token("!", (3, 4))])
    assert texts(line) == ["a", "東", "!"]
    assert seen(line)[1].read_as == "<0xE6><0x9D><0xB1>"


def test_a_mark_that_stands_alone_is_part_of_what_follows() -> None:
    line = line_of(
        "at 5", [Token("at", (0, 2)), Token("", (2, 2)), Token("5", (3, 4))], [(0, 2), (3, 4)]
    )
    assert [(part.text, part.first, part.end) for part in seen(line)] == [("at", 0, 1), ("5", 1, 3)]


def test_a_stand_in_is_told_from_what_it_stands_for() -> None:
    line = line_of("🙂 ok", [Token("Boston", (0, 1)), Token("OK", (2, 4))])
    assert [part.read_as for part in seen(line)] == ["Boston", ""]
