"""What the engine refuses of options, and of which it says that they leave no translation."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from service.bundle import Bundle
from service.decoding import DecodingOptions
from service.engine import Engine, load_engine
from service.errors import InvalidArgument
from tests.gate import PATIENCE
from tests.tiny_bundle import VOCABULARY_SIZE, random_sources

SOURCES = random_sources(6)
GREEDY = DecodingOptions(max_length=12)


@pytest.fixture(scope="module")
def engine(bundle: Bundle) -> Iterator[Engine]:
    engine = load_engine(bundle, precision="fp32", workers=1, max_rows=8)
    yield engine
    engine.close()


@pytest.mark.parametrize(
    "options",
    [
        replace(GREEDY, prefix=(VOCABULARY_SIZE,)),
        replace(GREEDY, suppress_tokens=(3, VOCABULARY_SIZE)),
        replace(GREEDY, suppress_sequences=((4, VOCABULARY_SIZE), (5,))),
    ],
)
def test_a_token_outside_of_the_vocabulary_is_refused_and_harms_nobody(
    engine: Engine, options: DecodingOptions
) -> None:
    others = engine.submit_all(SOURCES, GREEDY)
    with pytest.raises(InvalidArgument, match=f"token {VOCABULARY_SIZE}, the vocabulary has 512"):
        engine.submit_all(SOURCES, options)
    assert all(future.result(PATIENCE) for future in others)
    last = replace(GREEDY, prefix=(VOCABULARY_SIZE - 1,))
    (found,) = engine.submit_all(SOURCES[:1], last)
    assert found.result(PATIENCE)[0].ids[0] == VOCABULARY_SIZE - 1


def test_options_that_leave_no_translation_are_named_and_harm_nobody(engine: Engine) -> None:
    alone = [future.result(PATIENCE)[0].ids for future in engine.submit_all(SOURCES, GREEDY)]
    impossible = replace(GREEDY, return_alternatives=True, min_alternative_prob=1.0, min_length=2)
    refused, others = (engine.submit_all(SOURCES, options) for options in (impossible, GREEDY))
    names = "^min_length, return_alternatives, min_alternative_prob: no translation"
    for future in refused:
        with pytest.raises(InvalidArgument, match=names):
            future.result(PATIENCE)
    assert [future.result(PATIENCE)[0].ids for future in others] == alone


def test_each_sentence_may_have_options_of_its_own(engine: Engine) -> None:
    each = [DecodingOptions(max_length=length) for length in range(1, 1 + len(SOURCES))]
    futures = engine.submit_all(SOURCES, each)
    for options, future in zip(each, futures, strict=True):
        assert len(future.result(PATIENCE)[0].token_log_probs) <= options.max_length
    with pytest.raises(InvalidArgument, match="max_length is 81"):
        engine.submit_all(SOURCES[:2], [GREEDY, DecodingOptions(max_length=81)])


@pytest.mark.parametrize(
    "options",
    [
        DecodingOptions(),
        DecodingOptions(coverage_penalty=1.0, attention=True),
        DecodingOptions(repetition_penalty=1.2),
        DecodingOptions(min_length=1),
        DecodingOptions(min_length_ratio=0.1),
        DecodingOptions(no_repeat_ngram_size=2),
        DecodingOptions(suppress_tokens=(5,)),
        DecodingOptions(suppress_sequences=((5,),)),
        DecodingOptions(prefix=(5,)),
        DecodingOptions(return_alternatives=True),
        DecodingOptions(sampling_temperature=1.0),
    ],
)
def test_options_are_named_if_they_filter(options: DecodingOptions) -> None:
    assert bool(options.filters) == options.is_filtered
