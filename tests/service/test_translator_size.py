"""Answers that are large: given up in time, and never built on the event loop."""

import asyncio
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest

from service.batching import Request
from service.bundle import Bundle
from service.decoding import DecodingOptions, Hypothesis
from service.engine import load_engine
from service.errors import DeadlineExceeded, InvalidArgument
from service.rpc.convert import Answer, response_bytes, scores_bytes
from service.text.protect import Protection
from service.translator import (
    Extras,
    Pair,
    Ranking,
    TextOptions,
    Translator,
    least_bytes,
    pair_bytes,
)
from service.translator.document import Unit
from service.translator.reader import Reader
from service.translator.results import TranslatedHypothesis
from service.translator.size import fitting
from service.translator.windows import decode
from service.translator.writer import Writer

TEXT = "Two young women are walking."
ATTENTION = DecodingOptions(beam_size=2, num_hypotheses=2, max_length=20, attention=True)


@pytest.fixture(scope="module")
def translator(bundle: Bundle) -> Iterator[Translator]:
    engine = load_engine(bundle, precision="fp32", workers=1, max_rows=8)
    yield Translator(bundle, engine)
    engine.close()


def asked(translator: Translator, count: int, max_bytes: int | None) -> list[int]:
    """How many hypotheses were written of each sentence before the request ended."""
    return [
        len(sentence.hypotheses)
        for translation in asyncio.run(
            translator.translate_async([TEXT] * count, ATTENTION, max_bytes=max_bytes)
        )
        for sentence in translation.sentences
    ]


def test_an_answer_has_at_least_the_bytes_it_is_said_to_have(translator: Translator) -> None:
    contents = [TEXT, "42! A man. 🙂", "", "1"]
    everything, greedy = Extras(alignment=True, token_scores=True), DecodingOptions(max_length=4)
    for options, extras in ((ATTENTION, Extras()), (greedy, Extras()), (ATTENTION, everything)):
        for translation in translator.translate(contents, options, extras=extras):
            message = response_bytes([Answer(translation, translator, None)], 1 << 20)
            assert 0 <= least_bytes(translation) <= len(message)


def test_a_score_has_at_least_the_bytes_it_is_said_to_have(translator: Translator) -> None:
    for ranking in (Ranking(), Ranking(attention=True)):
        pairs = [Pair(TEXT, "Deux jeunes femmes"), Pair("A man.", "")]
        for score in asyncio.run(translator.score_async(pairs, ranking)):
            message = scores_bytes([score], translator.manifest, 1 << 20)
            assert 0 < pair_bytes(score) <= len(message)


def test_an_answer_that_grows_too_large_is_given_up_before_the_rest_is_written(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, plain = list[Unit](), Writer.hypotheses

    def counted(
        self: Writer, unit: Unit, results: Sequence[Hypothesis]
    ) -> tuple[TranslatedHypothesis, ...]:
        written.append(unit)
        return plain(self, unit, results)

    monkeypatch.setattr(Writer, "hypotheses", counted)
    assert asked(translator, 32, None) == [2] * 32
    written.clear()
    with pytest.raises(InvalidArgument, match="more than 5000 bytes"):
        asked(translator, 32, 5000)
    assert len(written) < 8


class CountingEngine:
    """Counts the sentences whose results nobody has taken yet, and keeps what it was told."""

    def __init__(self) -> None:
        self.waiting = self.most = 0
        self.groups = list[object]()
        self.announced = list[int]()

    def submit_all(
        self,
        sources: Sequence[object],
        options: DecodingOptions,
        deadline: float | None,
        group: object,
        *,
        tokens_to_come: int,
    ) -> list[Future[list[Hypothesis]]]:
        self.announced.append(tokens_to_come)
        return self.submit_more(sources, options, deadline, group)

    def submit_more(
        self,
        sources: Sequence[object],
        options: DecodingOptions,
        deadline: float | None,
        group: object,
    ) -> list[Future[list[Hypothesis]]]:
        self.groups.append(group)
        self.waiting += len(sources)
        self.most = max(self.most, self.waiting)
        futures = [Future[list[Hypothesis]]() for _ in sources]
        for future in futures:
            future.set_result([])
        return futures


async def drained(engine: CountingEngine, sources: Sequence[Sequence[int]], at_once: int) -> int:
    """How many results there were, each window's taken at once."""
    count = 0

    async def take(window: list[list[Hypothesis]]) -> None:
        nonlocal count
        count += len(window)
        engine.waiting -= len(window)

    await decode(engine, sources, ATTENTION, Request(1, 1), take, at_once)  # type: ignore[arg-type]
    return count


@pytest.mark.parametrize("at_once", [1, 3, 4, 17, 256])
def test_no_more_is_decoded_ahead_than_may_wait(at_once: int) -> None:
    engine = CountingEngine()
    assert asyncio.run(drained(engine, [[5]] * 300, at_once)) == 300
    assert engine.most <= at_once


def test_a_request_is_one_group_and_says_at_first_how_long_it_is() -> None:
    engine = CountingEngine()
    for sources in ([[5]], [[5, 6]] * 300, []):
        asyncio.run(drained(engine, sources, 256))
    assert engine.announced == [0, 2 * (300 - 64)]
    single, *windows = engine.groups
    assert windows == [windows[0]] * 5
    assert single != windows[0]


def test_as_many_sentences_are_decoded_at_once_as_have_attention_that_fits() -> None:
    sources = [[1] * 10] * 64
    each = 2 * 20 * 10 * 4  # hypotheses x target x source tokens x bytes
    assert fitting(sources, ATTENTION, 5 * each) == 5
    assert fitting(sources, ATTENTION, 1) == 1
    heads = replace(ATTENTION, attention_heads=True)
    assert fitting(sources, heads, 5 * 4 * each, num_heads=4) == 5
    assert fitting(sources, ATTENTION, 5 * each, num_heads=4) == 5
    assert fitting(sources, ATTENTION, None) == fitting(sources, DecodingOptions(), 1) == 64


def test_large_results_are_written_off_the_event_loop_and_a_sentence_on_it(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_loop, plain = set[bool](), Writer.hypotheses

    def recorded(
        self: Writer, unit: Unit, results: Sequence[Hypothesis]
    ) -> tuple[TranslatedHypothesis, ...]:
        on_loop.add(threading.current_thread() is threading.main_thread())
        return plain(self, unit, results)

    monkeypatch.setattr(Writer, "hypotheses", recorded)
    translator.translate([TEXT])
    assert on_loop == {True}
    on_loop.clear()
    translator.translate([TEXT] * 32, ATTENTION)
    assert on_loop == {False}


@pytest.mark.parametrize(
    ("num_terms", "num_spans", "on_loop"), [(3, 3, True), (1000, 0, False), (0, 1000, False)]
)
def test_many_terms_or_spans_are_looked_for_off_the_event_loop(
    translator: Translator,
    monkeypatch: pytest.MonkeyPatch,
    num_terms: int,
    num_spans: int,
    on_loop: bool,
) -> None:
    seen, units = set[bool](), Reader.units

    def recorded(self: Reader, *arguments: Any) -> Iterator[Unit]:
        for unit in units(self, *arguments):
            seen.add(threading.current_thread() is threading.main_thread())
            yield unit

    monkeypatch.setattr(Reader, "units", recorded)
    glossary = {f"t{number}": "x" for number in range(num_terms)}
    options = TextOptions(
        protection=Protection(glossary=glossary), protected_spans={0: [(0, 1)] * num_spans}
    )
    translator.translate([TEXT], text_options=options)
    assert seen == {on_loop}


def test_a_text_that_is_read_beyond_its_deadline_is_read_no_further(
    translator: Translator,
) -> None:
    with pytest.raises(DeadlineExceeded, match="while the texts were read"):
        translator.translate(["A man. " * 1000], deadline=time.monotonic())
