import asyncio
from collections.abc import Iterator

import numpy as np
import pytest

from service.bundle import Bundle
from service.decoding import DecodingOptions
from service.engine import Engine, load_engine
from service.errors import DeadlineExceeded, InvalidArgument, WorkerFailed
from service.text import Tokenizer
from service.translator import Translation, Translator
from tests.gate import Gate, GatedModel

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


def test_a_text_that_is_too_long_is_named_with_its_length_and_the_limit(
    translator: Translator, bundle: Bundle
) -> None:
    long = "zebra " * 40
    count = len(Tokenizer.from_bytes(bundle.tokenizer_bytes("source")).encode(long.strip())) + 1
    with pytest.raises(InvalidArgument) as refusal:
        translator.translate(["A man.", long])
    limit = bundle.manifest.limits.max_source_tokens
    assert f"contents[1] has {count} tokens, the limit of" in str(refusal.value)
    assert f"is {limit}; split it" in str(refusal.value)
    assert "zebra" not in str(refusal.value)


def test_a_lone_surrogate_is_refused(translator: Translator) -> None:
    with pytest.raises(InvalidArgument, match=r"contents\[1\] has a lone surrogate at 2"):
        translator.translate(["A man.", "a \ud800 man"])


def test_the_event_loop_gets_what_a_thread_gets(translator: Translator) -> None:
    async def both() -> list[list[Translation]]:
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
    assert stage.engine.drain(30)
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
