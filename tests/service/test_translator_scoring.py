"""Scores of given translations, and what comes with every hypothesis on request."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from service.bundle import Bundle
from service.decoding import DecodingOptions, LengthForm
from service.engine import load_engine
from service.errors import InvalidArgument
from service.translator import (
    Extras,
    Pair,
    PairScore,
    Ranking,
    TextOptions,
    TranslatedHypothesis,
    Translator,
)
from tests.gate import PATIENCE
from tests.tiny_bundle import random_sources

SOURCE = "Two young women are walking."
TARGETS = ("Deux jeunes femmes marchent dans la rue.", "The lazy dog", "naïve 中", "")
EVERYTHING = Extras(alignment=True, token_scores=True)
BEAM = DecodingOptions(beam_size=3, num_hypotheses=3, max_length=20, attention=True)


@pytest.fixture(scope="module")
def translator(bundle: Bundle) -> Iterator[Translator]:
    engine = load_engine(bundle, precision="fp32", workers=2, max_rows=12)
    yield Translator(bundle, engine)
    engine.close()


def scores(
    translator: Translator, *targets: str, ranking: Ranking | None = None
) -> list[PairScore]:
    pairs = [Pair(SOURCE, target) for target in targets]
    return asyncio.run(translator.score_async(pairs, ranking))


@pytest.mark.parametrize(
    "options",
    [
        replace(BEAM, length_penalty=0.6),
        replace(BEAM, length_form=LengthForm.WU, coverage_penalty=0.2),
    ],
)
def test_forcing_what_was_returned_gives_what_came_with_it(
    translator: Translator, options: DecodingOptions
) -> None:
    sources, eos = random_sources(8), translator.manifest.special_ids.eos
    returned = [
        (source, found)
        for source, future in zip(
            sources, translator.engine.submit_all(sources, options), strict=True
        )
        for found in future.result(PATIENCE)
        if len(found.ids) < len(found.token_log_probs)  # not cut off: forcing ends the sentence
    ]
    assert len(returned) > 4
    ranking = replace(Ranking.of(options), attention=True)
    forcing = [ranking.forcing(found.ids, eos) for _, found in returned]
    futures = translator.engine.submit_all([source for source, _ in returned], forcing)
    for (_, found), future in zip(returned, futures, strict=True):
        (forced,) = future.result(PATIENCE)
        assert forced.ids == found.ids
        np.testing.assert_allclose(forced.token_log_probs, found.token_log_probs, atol=1e-4)
        assert forced.log_prob == pytest.approx(found.log_prob, abs=1e-4)
        assert forced.score == pytest.approx(found.score, abs=1e-4)
        assert forced.attention is not None and found.attention is not None
        np.testing.assert_allclose(forced.attention, found.attention, atol=1e-4)


def test_a_score_is_that_of_the_same_beginning_of_a_translation(translator: Translator) -> None:
    for target, score in zip(TARGETS[:3], scores(translator, *TARGETS[:3]), strict=True):
        prefix = translator.wording.prefix(target)
        options = DecodingOptions(prefix=prefix, max_length=len(prefix))
        (translation,) = translator.translate([SOURCE], options, extras=EVERYTHING)
        (sentence,) = translation.sentences
        begun = sentence.hypotheses[0].token_scores
        assert begun is not None
        assert [token.piece for token in begun.tokens] == [
            token.piece for token in score.token_scores.tokens
        ]
        assert len(score.token_scores.log_probs) == len(begun.log_probs) + 1
        np.testing.assert_allclose(score.token_scores.log_probs[:-1], begun.log_probs, atol=1e-4)
        assert score.source_token_count == sentence.source_token_count


def test_scores_do_not_depend_on_what_is_scored_beside(translator: Translator) -> None:
    together = scores(translator, *TARGETS * 80)
    for target, score in zip(TARGETS, together[:4], strict=True):
        (alone,) = scores(translator, target)
        assert score.log_prob == pytest.approx(alone.log_prob, abs=1e-4)
        assert score.log_prob == pytest.approx(float(score.token_scores.log_probs.sum()), abs=1e-4)
    assert [score.log_prob for score in together[4:8]] == pytest.approx(
        [score.log_prob for score in together[:4]], abs=1e-4
    )


def test_a_ranking_makes_the_score_and_leaves_the_log_probability(translator: Translator) -> None:
    (off,) = scores(translator, TARGETS[0], ranking=Ranking(length_penalty=0))
    (mean,) = scores(translator, TARGETS[0], ranking=Ranking(length_penalty=1))
    (covered,) = scores(translator, TARGETS[0], ranking=Ranking(0, coverage_penalty=1.0))
    assert off.score == off.log_prob == pytest.approx(mean.log_prob)
    assert mean.score == pytest.approx(mean.log_prob / len(mean.token_scores.log_probs))
    assert covered.score < covered.log_prob


def test_attention_of_a_score_speaks_of_the_two_texts(translator: Translator) -> None:
    (score,) = scores(translator, TARGETS[0], ranking=Ranking(attention=True))
    assert score.attention is not None
    *words, end = score.attention.source_tokens
    assert SOURCE[words[0].start : words[-1].end] == SOURCE
    assert (end.start, end.end) == (len(SOURCE), len(SOURCE))
    targets = score.attention.target_tokens
    assert TARGETS[0][targets[0].start : targets[-1].end] == TARGETS[0]
    assert score.attention.weights.shape == (len(targets), len(words) + 1)
    assert scores(translator, TARGETS[0])[0].attention is None


def test_every_head_of_a_score_and_of_a_translation_is_returned_on_request(
    translator: Translator,
) -> None:
    num_heads = translator.manifest.attention.num_heads
    (score,) = scores(translator, TARGETS[0], ranking=Ranking(attention=True, attention_heads=True))
    (translation,) = translator.translate([SOURCE], replace(BEAM, attention_heads=True))
    hypotheses = translation.sentences[0].hypotheses
    for attention in (score.attention, *(hypothesis.attention for hypothesis in hypotheses)):
        assert attention is not None and attention.heads is not None
        assert attention.heads.shape == (num_heads, *attention.weights.shape)
        np.testing.assert_allclose(attention.heads.mean(axis=0), attention.weights, atol=1e-6)
    (usual,) = translator.translate([SOURCE], BEAM)
    best = usual.sentences[0].hypotheses[0].attention
    assert usual.text == translation.text and best is not None and best.heads is None


@pytest.mark.parametrize("blank", [" \n", "\u200b", "\u202e", "\u00ad"])
def test_a_blank_target_is_scored_as_an_empty_one(translator: Translator, blank: str) -> None:
    (empty, score) = scores(translator, "", blank, ranking=Ranking(attention=True))
    assert score.log_prob == pytest.approx(empty.log_prob, abs=1e-4)
    assert score.attention is not None and score.attention.weights.shape[0] == 0


@pytest.mark.parametrize(
    ("pair", "fault"),
    [
        (Pair(" \n", "x"), r"pairs\[1\].source is blank"),
        (Pair(" " * 10**4, "x"), r"pairs\[1\].source is blank"),
        (Pair("\u200b", "x"), r"pairs\[1\].source is blank"),
        (Pair("\u202e", "x"), r"pairs\[1\].source is blank"),
        (Pair("\u00ad", "x"), r"pairs\[1\].source is blank"),
        (Pair("zebra " * 60, "x"), r"pairs\[1\].source has more than 48 tokens"),
        (Pair("x" * 10**6, "x"), r"pairs\[1\].source has more than 48 tokens"),
        (Pair("A man.", "zebra " * 60), r"pairs\[1\].target has more than 80 tokens"),
    ],
)
def test_a_pair_that_cannot_be_scored_is_named(
    translator: Translator, pair: Pair, fault: str
) -> None:
    with pytest.raises(InvalidArgument, match=fault):
        asyncio.run(translator.score_async([Pair("A man.", "x"), pair]))


def test_a_ranking_out_of_its_range_is_refused(translator: Translator) -> None:
    with pytest.raises(InvalidArgument, match="coverage_penalty is -1"):
        scores(translator, TARGETS[0], ranking=Ranking(coverage_penalty=-1))


def test_scores_that_do_not_fit_in_a_message_are_given_up(translator: Translator) -> None:
    with pytest.raises(InvalidArgument, match="more than 500 bytes"):
        asyncio.run(translator.score_async([Pair(SOURCE, TARGETS[0])] * 32, None, None, 500))


def test_no_pairs_have_no_scores(translator: Translator) -> None:
    assert scores(translator) == []


CONTENT = f"  {SOURCE}\n\t<b>See</b> https://a.org now, A MAN 中!"


def hypotheses_of(
    translator: Translator, options: DecodingOptions, extras: Extras
) -> list[tuple[TranslatedHypothesis, str]]:
    """With the text that their spans index."""
    (translation,) = translator.translate([CONTENT], options, extras=extras)
    found = []
    for sentence in translation.sentences:
        start, end = sentence.target
        for hypothesis in sentence.hypotheses:
            text = translation.text[:start] + hypothesis.text + translation.text[end:]
            found.append((hypothesis, text))
    return found


def test_tokens_and_words_lie_in_the_texts_as_the_caller_knows_them(
    translator: Translator,
) -> None:
    found = hypotheses_of(translator, BEAM, EVERYTHING)
    assert len(found) > 3
    for hypothesis, text in found:
        scores, alignment, attention = (
            hypothesis.token_scores,
            hypothesis.alignment,
            hypothesis.attention,
        )
        assert scores and alignment and attention
        assert scores.tokens == attention.target_tokens
        assert len(scores.log_probs) == hypothesis.token_count
        assert float(scores.log_probs.sum()) == pytest.approx(hypothesis.log_prob, abs=1e-4)
        target = "".join(text[slice(*word)] for word in alignment.target_words)
        assert set(target) <= set(hypothesis.text)
        for word in alignment.source_words:
            assert CONTENT[slice(*word)].strip() == CONTENT[slice(*word)] != ""


def test_extras_change_nothing_else_and_come_only_when_they_are_asked_for(
    translator: Translator,
) -> None:
    options = replace(BEAM, attention=False)
    plain, full = (hypotheses_of(translator, options, each) for each in (Extras(), EVERYTHING))
    assert [text for _, text in plain] == [text for _, text in full]
    for (without, _), (with_extras, _) in zip(plain, full, strict=True):
        assert with_extras.attention is None
        assert without.attention is None
        assert without.alignment is None and without.token_scores is None
        assert without.score == with_extras.score
    only_scores = hypotheses_of(translator, options, Extras(token_scores=True))
    assert all(each.token_scores and not each.alignment for each, _ in only_scores)


def test_a_prefix_is_that_of_the_first_sentence_of_every_text(translator: Translator) -> None:
    prefix = translator.wording.prefix("Deux jeunes")
    options = DecodingOptions(prefix=prefix, max_length=30)
    contents = ["42! A man. A dog.", "The dog."]
    first, second = translator.translate(contents, options)
    plain, _ = translator.translate(contents, DecodingOptions(max_length=30, shortlist=False))
    number, man, dog = first.sentences
    assert number.passed_through
    assert man.hypotheses[0].text.startswith("Deux jeunes")
    assert dog.hypotheses[0].text == plain.sentences[2].hypotheses[0].text
    assert second.text.startswith("Deux jeunes")


def test_a_line_of_fragments_has_the_prefix_once(translator: Translator) -> None:
    prefix = translator.wording.prefix("Deux jeunes")
    options = DecodingOptions(prefix=prefix, max_length=30)
    whole = TextOptions(split_sentences=False)
    (translation,) = translator.translate(["A man. A dog."], options, text_options=whole)
    assert [each.hypotheses[0].text[:11] for each in translation.sentences] == ["Deux jeunes"]
