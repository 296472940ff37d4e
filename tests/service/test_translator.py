"""`Translator`: texts in, translations out, whatever is done to them on the way."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from service.batching import QueueLimits
from service.bundle import Bundle
from service.decoding import DecodingOptions
from service.engine import Engine, load_engine
from service.errors import DeadlineExceeded, InvalidArgument, WorkerFailed
from service.text import Tokenizer
from service.text.typography import with_no_break_spaces
from service.translator import LongSentences, TextOptions, Translation, Translator
from service.translator.windows import MAX_AT_ONCE
from tests.gate import PATIENCE, Gate, GatedModel

TEXTS = [
    "A man in a blue shirt.",
    "Two young women are walking.",
    "The quick brown fox — it jumps!",
    "naïve café 中",
    "I",
]
GREEDY = DecodingOptions(max_length=40)
BEAM = DecodingOptions(beam_size=3, num_hypotheses=3, max_length=20, attention=True)


@pytest.fixture(scope="module")
def translator(bundle: Bundle) -> Iterator[Translator]:
    engine = load_engine(bundle, precision="fp32", workers=2, max_rows=12)
    yield Translator(bundle, engine)
    engine.close()


def texts(translations: list[Translation]) -> list[str]:
    return [translation.text for translation in translations]


def test_texts_are_translated_each_by_itself_and_in_order(translator: Translator) -> None:
    alone = [text for each in TEXTS for text in texts(translator.translate([each], GREEDY))]
    assert texts(translator.translate(TEXTS, GREEDY)) == alone
    assert texts(translator.translate(TEXTS[::-1], GREEDY)) == alone[::-1]


def test_white_space_around_a_text_stays_where_it_is(translator: Translator) -> None:
    bare, spaced = translator.translate(["A man.", "\n\t A man. \u3000\r\n"], GREEDY)
    assert spaced.text == f"\n\t {bare.text} \u3000\r\n"
    assert spaced.sentences[0].source == (3, 9)
    assert spaced.sentences[0].target == (3, 3 + len(bare.text))


@pytest.mark.parametrize("text", ["", " ", "\n\n", "🙂", "42", " - 3.14 %\n", "https://a.b/c?d=e"])
def test_nothing_to_translate_passes_through(translator: Translator, text: str) -> None:
    before, passed, after = translator.translate(["A man.", text, "A man."], GREEDY)
    assert passed.passed_through and passed.text == text
    assert before.text == after.text and not before.passed_through


def test_no_texts_are_no_translations(translator: Translator) -> None:
    assert translator.translate([]) == asyncio.run(translator.translate_async([])) == []


def test_the_manifests_search_is_the_default(translator: Translator) -> None:
    search = translator.manifest.search
    assert translator.default_options.beam_size == search.beam_size
    assert translator.default_options.max_length == search.max_length
    assert texts(translator.translate(TEXTS)) == texts(
        translator.translate(TEXTS, translator.default_options)
    )


def test_attention_speaks_of_the_callers_texts(translator: Translator) -> None:
    contents = [f"  {text}\n" for text in TEXTS]
    for source, translation in zip(contents, translator.translate(contents, BEAM), strict=True):
        (sentence,) = translation.sentences
        assert 1 <= len(sentence.hypotheses) <= 3
        for hypothesis in sentence.hypotheses:
            attention = hypothesis.attention
            assert attention is not None
            shape = len(attention.target_tokens), len(attention.source_tokens)
            assert attention.weights.shape == shape
            assert shape[1] == sentence.source_token_count
            np.testing.assert_allclose(attention.weights.sum(axis=1), 1, atol=1e-5)

            *words, end = attention.source_tokens
            assert (end.start, end.end) == (len(source) - 1, len(source) - 1)
            assert source[words[0].start : words[-1].end] == source.strip()
            target = "  " + hypothesis.text + "\n"
            for token in attention.target_tokens:
                assert 2 <= token.start <= token.end <= len(target) - 1


def test_attention_costs_nothing_unless_asked_for(translator: Translator) -> None:
    (translation,) = translator.translate(["A man."], GREEDY)
    assert translation.sentences[0].hypotheses[0].attention is None


def test_the_best_hypothesis_is_the_translation(translator: Translator) -> None:
    for translation in translator.translate(TEXTS, BEAM):
        (sentence,) = translation.sentences
        scores = [hypothesis.score for hypothesis in sentence.hypotheses]
        assert scores == sorted(scores, reverse=True)
        assert translation.text == sentence.hypotheses[0].text
        begin, end = sentence.target
        assert translation.text[begin:end] == sentence.hypotheses[0].text


def test_sentences_are_translated_each_by_itself(translator: Translator) -> None:
    alone = texts(translator.translate(TEXTS[:3], GREEDY))
    (together,) = translator.translate([" - {}\r\n\n\t{} 🙂 {}\n".format(*TEXTS[:3])], GREEDY)
    assert together.text == " - {}\r\n\n\t{} 🙂 {}\n".format(*alone)
    assert not any(sentence.is_part for sentence in together.sentences)


def test_spans_of_every_sentence_are_in_the_whole_texts(translator: Translator) -> None:
    source = f"\u200b* {TEXTS[0]}\r\n 42! {TEXTS[1]}\0 🙂"
    (translation,) = translator.translate([source], BEAM)
    pieces = [source[slice(*sentence.source)] for sentence in translation.sentences]
    assert pieces == [TEXTS[0], "42!", TEXTS[1], "🙂"]
    first, number, second, picture = translation.sentences
    for passed, text in ((number, "42!"), (picture, "🙂")):
        assert passed.passed_through and translation.text[slice(*passed.target)] == text
    for sentence, text in ((first, TEXTS[0]), (second, TEXTS[1])):
        best = sentence.hypotheses[0]
        assert translation.text[slice(*sentence.target)] == best.text
        assert best.attention is not None
        *words, end = best.attention.source_tokens
        assert source[words[0].start : words[-1].end] == text
        assert (end.start, end.end) == (sentence.source[1], sentence.source[1])
        alone = translator.translate([text], BEAM)[0].sentences[0].hypotheses[0]
        assert best.text == alone.text and alone.attention is not None
        np.testing.assert_array_equal(best.attention.weights, alone.attention.weights)
        moved = [token.start - sentence.target[0] for token in best.attention.target_tokens]
        assert moved == [token.start for token in alone.attention.target_tokens]


def test_a_line_is_one_unit_where_sentences_are_not_wanted(translator: Translator) -> None:
    whole_lines = TextOptions(split_sentences=False)
    (translation,) = translator.translate(
        ["A man. A dog.\n- A cat."], GREEDY, text_options=whole_lines
    )
    assert [sentence.source for sentence in translation.sentences] == [(0, 13), (14, 22)]
    assert translation.text.count("\n") == 1


def test_a_long_sentence_is_translated_in_parts_and_says_so(
    translator: Translator, bundle: Bundle
) -> None:
    source = "A man in a blue shirt, " * 20
    (translation,) = translator.translate([source], GREEDY)
    limit = bundle.manifest.limits.max_source_tokens
    parts = translation.sentences
    assert len(parts) > 1 and all(part.is_part for part in parts)
    assert all(0 < part.source_token_count <= limit for part in parts)
    sources = [source[slice(*part.source)] for part in parts]
    assert " ".join(sources) == source.strip()
    assert all(text.endswith(",") for text in sources)
    assert translation.text[:-1] == " ".join(part.hypotheses[0].text for part in parts)


def test_a_long_sentence_is_refused_on_demand_with_its_length_and_the_limit(
    translator: Translator, bundle: Bundle
) -> None:
    refuse = TextOptions(long_sentences=LongSentences.REFUSE)
    long = "zebra " * 40
    count = len(Tokenizer.from_bytes(bundle.tokenizer_bytes("source")).encode(long.strip())) + 1
    limit = bundle.manifest.limits.max_source_tokens
    with pytest.raises(InvalidArgument) as refusal:
        translator.translate(["A man.", f"A dog. {long}"], text_options=refuse)
    assert f"contents[1] has a sentence of {count} tokens, the limit of" in str(refusal.value)
    assert f"is {limit}; shorten it" in str(refusal.value)
    assert "zebra" not in str(refusal.value)
    with pytest.raises(InvalidArgument, match=r"contents\[0\] has a sentence of more than 4096"):
        translator.translate(["zebra " * 4000], text_options=refuse)


def test_what_is_longer_than_the_model_likes_is_split_unless_it_may_not_be(
    translator: Translator, bundle: Bundle
) -> None:
    limits = replace(bundle.manifest.limits, preferred_source_tokens=12)
    careful = Translator(
        replace(bundle, manifest=replace(bundle.manifest, limits=limits)), translator.engine
    )
    source = "A man in a blue shirt and two women are in the street with their dogs"
    (split,) = careful.translate([source], GREEDY)
    assert len(split.sentences) > 1 and all(part.is_part for part in split.sentences)
    refuse = TextOptions(long_sentences=LongSentences.REFUSE)
    whole = [t.translate([source], GREEDY, text_options=refuse)[0] for t in (careful, translator)]
    assert whole[0].text == whole[1].text
    assert [sentence.is_part for sentence in whole[0].sentences] == [False]


def test_a_text_in_an_unknown_script_passes_through(translator: Translator) -> None:
    source = "Привет, как дела? A man.\n你好"
    (translation,) = translator.translate([source], GREEDY)
    russian, man, chinese = translation.sentences
    assert russian.passed_through and chinese.passed_through and not man.passed_through
    assert translation.text.startswith("Привет, как дела? ") and translation.text.endswith("\n你好")


def test_a_long_request_is_decoded_in_windows_and_its_order_stays(translator: Translator) -> None:
    alone = texts(translator.translate(TEXTS, GREEDY))
    (long,) = translator.translate(["\n".join(TEXTS * 120)], GREEDY)
    assert long.text == "\n".join(alone * 120)
    assert len(long.sentences) == 120 * len(TEXTS) > 2 * MAX_AT_ONCE


def test_a_long_request_waits_for_room_once_it_has_begun(bundle: Bundle) -> None:
    engine = load_engine(bundle, precision="fp32", workers=1, queue=QueueLimits(100))
    translator = Translator(bundle, engine)
    contents = ["I\n" * (2 * MAX_AT_ONCE)]
    try:
        assert len(translator.translate(contents, GREEDY)[0].sentences) == 2 * MAX_AT_ONCE
    finally:
        engine.close()


def test_french_gets_its_no_break_spaces_on_demand() -> None:
    plain = "« Oui ! » dit-il : quoi ? Non ; 3:4"
    french = with_no_break_spaces(plain, "fr-CA")
    assert french == "«\u00a0Oui\u202f!\u00a0» dit-il\u00a0: quoi\u202f? Non\u202f; 3:4"
    assert with_no_break_spaces(plain, "en") == plain


def test_a_lone_surrogate_is_refused(translator: Translator) -> None:
    with pytest.raises(InvalidArgument, match=r"contents\[1\] has a lone surrogate at 2"):
        translator.translate(["A man.", "a \ud800 man"])


def test_requests_run_side_by_side_on_an_event_loop(translator: Translator) -> None:
    async def both() -> tuple[list[Translation], list[Translation]]:
        return await asyncio.gather(
            translator.translate_async(TEXTS, GREEDY),
            translator.translate_async(TEXTS * 60, GREEDY),
        )

    few, many = asyncio.run(both())
    assert texts(few) * 60 == texts(many)
    assert texts(few) == texts(translator.translate(TEXTS, GREEDY))


class Stage:
    """A translator whose engine waits at a gate before every step."""

    def __init__(self, bundle: Bundle) -> None:
        self.gate, self.now = Gate(), 0.0
        self.model = GatedModel(self.gate)
        self.engine = Engine(
            lambda: self.model, bundle.manifest.limits, max_rows=8, clock=lambda: self.now
        )
        self.translator = Translator(bundle, self.engine)

    async def in_flight(self, deadline: float | None = None) -> asyncio.Task[list[Translation]]:
        """A request whose first step is about to run."""
        request = self.translator.translate_async(TEXTS, GREEDY, deadline)
        task = asyncio.create_task(request)
        await asyncio.to_thread(self.gate.await_worker)
        return task


@pytest.fixture
def stage(bundle: Bundle) -> Iterator[Stage]:
    stage = Stage(bundle)
    yield stage
    stage.gate.open()
    stage.engine.close()


def test_a_caller_that_goes_away_frees_all_its_rows(stage: Stage) -> None:
    async def leave() -> None:
        task = await stage.in_flight()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave())
    stage.gate.open()
    [next_one] = stage.engine.submit_all([[5]], GREEDY)
    next_one.result(PATIENCE)
    assert len(stage.model.states) == 0


def test_a_deadline_ends_the_whole_request(stage: Stage) -> None:
    async def expire() -> None:
        task = await stage.in_flight(deadline=1.0)
        stage.now = 1.0
        stage.gate.open()
        with pytest.raises(DeadlineExceeded):
            await task

    asyncio.run(expire())


def test_a_fault_ends_the_whole_request(stage: Stage) -> None:
    async def fail() -> None:
        task = await stage.in_flight()
        stage.model.fails = True
        stage.gate.open()
        with pytest.raises(WorkerFailed):
            await task

    asyncio.run(fail())
