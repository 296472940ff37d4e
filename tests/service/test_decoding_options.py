"""Options of the search: what is refused, and how the message helps."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.decoding import DecodingOptions, LengthForm, Stopping, decode
from service.errors import InvalidArgument
from tests.toys import ToyModel


@pytest.mark.parametrize(
    ("field", "value", "limit"),
    [
        ("beam_size", 0, "1 to 64"),
        ("beam_size", 65, "1 to 64"),
        ("num_hypotheses", 0, "1 to 64"),
        ("length_penalty", -0.1, "0 to 10"),
        ("length_penalty", math.nan, "0 to 10"),
        ("length_penalty", 10.5, "0 to 10"),
        ("max_length", 0, "at least 1"),
        ("max_length_ratio", -1.0, "0 to 100"),
        ("max_length_ratio", math.inf, "0 to 100"),
        ("max_length_ratio", 1e308, "0 to 100"),
        ("patience", 0.0, "positive"),
        ("patience", math.nan, "positive"),
        ("patience", 1.7e308, "at most 100"),
        ("coverage_penalty", -0.1, "0 to 10"),
        ("coverage_penalty", math.nan, "0 to 10"),
        ("min_length", -1, "at least 0"),
        ("min_length_ratio", 101.0, "0 to 100"),
        ("repetition_penalty", 0.9, "1 to 10"),
        ("repetition_penalty", math.inf, "1 to 10"),
        ("no_repeat_ngram_size", 33, "0 to 32"),
        ("prefix_bias_beta", 1.0, "0 to below 1"),
        ("prefix_bias_beta", math.nan, "0 to below 1"),
        ("min_alternative_prob", 1.1, "0 to 1"),
        ("sampling_temperature", -1.0, "0 to 10"),
        ("sampling_top_k", -1, "at least 0"),
        ("sampling_top_p", 0.0, "positive and at most 1"),
        ("sampling_top_p", math.nan, "positive and at most 1"),
        ("sampling_seed", -1, "from 0 to"),
        ("sampling_seed", 2**64, "from 0 to"),
    ],
)
def test_a_value_out_of_range_is_named_with_its_limit(field: str, value: float, limit: str) -> None:
    with pytest.raises(InvalidArgument) as error:
        DecodingOptions(**{field: value})  # type: ignore[arg-type]
    message = str(error.value)
    assert field in message and str(value) in message and limit in message


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("prefix", (3, -1), "prefix has the id -1"),
        ("suppress_tokens", (2**31,), f"suppress_tokens has the id {2**31}"),
        ("suppress_tokens", tuple(range(1025)), "suppress_tokens has 1025 entries"),
        ("suppress_sequences", ((1,),) * 257, "suppress_sequences has 257 entries"),
        ("suppress_sequences", ((1, 2), ()), "a sequence of suppress_sequences has 0 entries"),
        ("suppress_sequences", ((1,) * 33,), "a sequence of suppress_sequences has 33 entries"),
        ("suppress_sequences", ((1, -2),), "suppress_sequences has the id -2"),
    ],
)
def test_ids_that_cannot_be_are_named(field: str, value: object, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        DecodingOptions(**{field: value})  # type: ignore[arg-type]


CONTRADICTIONS: list[tuple[dict[str, Any], str, str]] = [
    ({"min_length": 9, "max_length": 8}, "min_length is 9", "max_length is 8"),
    (
        {"min_length_ratio": 4.0, "max_length_ratio": 3.0},
        "min_length_ratio is 4.0",
        "max_length_ratio is 3.0",
    ),
    ({"prefix": (2, 3, 4), "max_length": 2}, "prefix has 3 tokens", "max_length is 2"),
    ({"prefix_bias_beta": 0.5}, "prefix_bias_beta is 0.5", "prefix is empty"),
    (
        {"prefix_bias_beta": 0.5, "prefix": (1,), "return_alternatives": True},
        "prefix_bias_beta is 0.5",
        "return_alternatives is set",
    ),
    (
        {"return_alternatives": True, "beam_size": 4, "num_hypotheses": 2},
        "num_hypotheses is 2",
        "beam_size is 4",
    ),
    ({"min_alternative_prob": 0.1}, "min_alternative_prob is 0.1", "return_alternatives is not"),
    (
        {"sampling_temperature": 1.0, "beam_size": 2},
        "sampling_temperature is 1.0",
        "beam_size is 2",
    ),
    (
        {"sampling_temperature": 1.0, "return_alternatives": True},
        "sampling_temperature is 1.0",
        "return_alternatives is set",
    ),
    ({"sampling_top_k": 5}, "sampling_top_k is 5", "sampling_temperature is 0"),
    ({"sampling_top_p": 0.5}, "sampling_top_p is 0.5", "sampling_temperature is 0"),
    ({"sampling_seed": 1}, "sampling_seed is 1", "sampling_temperature is 0"),
    ({"attention_heads": True}, "attention_heads is set", "without attention"),
]


@pytest.mark.parametrize(("asked", "one", "other"), CONTRADICTIONS)
def test_a_contradiction_names_both_options(asked: dict[str, Any], one: str, other: str) -> None:
    with pytest.raises(InvalidArgument) as error:
        DecodingOptions(**asked)
    assert one in str(error.value) and other in str(error.value)


def test_more_hypotheses_than_beams_names_both() -> None:
    with pytest.raises(InvalidArgument, match="num_hypotheses is 5 but beam_size is 4"):
        DecodingOptions(beam_size=4, num_hypotheses=5)


def test_patience_without_its_stopping_rule_names_both() -> None:
    with pytest.raises(InvalidArgument, match=r"patience is 2\.0 but stopping is BEST"):
        DecodingOptions(beam_size=4, patience=2.0)


def test_more_hypotheses_than_patience_waits_for_names_both() -> None:
    with pytest.raises(InvalidArgument, match=r"num_hypotheses is 3 but patience 0\.5 stops at 2"):
        DecodingOptions(beam_size=4, num_hypotheses=3, stopping=Stopping.FINISHED, patience=0.5)


@pytest.mark.parametrize(
    ("beam_size", "patience", "count"), [(4, 1.0, 4), (5, 0.5, 3), (2, 1.25, 3), (4, 0.6, 2)]
)
def test_patience_counts_hypotheses_and_rounds_halves_up(
    beam_size: int, patience: float, count: int
) -> None:
    options = DecodingOptions(beam_size=beam_size, stopping=Stopping.FINISHED, patience=patience)
    assert options.patience_count == count


@pytest.mark.parametrize(
    ("max_length", "ratio", "source_length", "limit"),
    [
        (256, 3.0, 20, 60),
        (256, 1.5, 15, 23),  # 22.5 rounds up
        (256, 3.0, 2, 16),  # a ratio never limits below 16
        (10, 3.0, 2, 10),  # but the maximum does
        (256, 3.0, 200, 256),
        (256, 0.0, 2, 256),  # off
    ],
)
def test_the_length_limit_is_the_lower_of_ratio_and_maximum(
    max_length: int, ratio: float, source_length: int, limit: int
) -> None:
    options = DecodingOptions(max_length=max_length, max_length_ratio=ratio)
    assert options.length_limit(source_length) == limit


@pytest.mark.parametrize(
    ("min_length", "ratio", "source_length", "least"),
    [(0, 0.0, 20, 0), (5, 0.0, 20, 5), (5, 0.5, 20, 10), (5, 0.5, 7, 5), (0, 0.5, 7, 4)],
)
def test_the_least_length_is_the_higher_of_ratio_and_minimum(
    min_length: int, ratio: float, source_length: int, least: int
) -> None:
    options = DecodingOptions(min_length=min_length, min_length_ratio=ratio)
    assert options.least_length(source_length) == least


def test_the_largest_id_is_that_of_everything_that_names_one() -> None:
    assert DecodingOptions().largest_id == -1
    assert DecodingOptions(suppress_tokens=(3, 9)).largest_id == 9
    assert DecodingOptions(prefix=(5,), suppress_sequences=((7, 2), (6,))).largest_id == 7


TINY = ToyModel(8, seed=5)
IDS = st.lists(st.integers(-1, 7), max_size=5).map(tuple)
UNIT = st.sampled_from([0.0, 0.01, 0.5, 1.0, math.nan])
DRAWN: dict[str, st.SearchStrategy[Any]] = {
    "beam_size": st.integers(0, 5),
    "num_hypotheses": st.integers(0, 5),
    "length_penalty": st.sampled_from([0.0, 1.0, 10.0, -1.0]),
    "length_form": st.sampled_from(LengthForm),
    "coverage_penalty": st.sampled_from([0.0, 0.2, 10.0, math.inf]),
    "max_length": st.integers(0, 12),
    "max_length_ratio": st.sampled_from([0.0, 0.5, 3.0]),
    "min_length": st.integers(-1, 12),
    "min_length_ratio": st.sampled_from([0.0, 0.5, 4.0]),
    "stopping": st.sampled_from(Stopping),
    "patience": st.sampled_from([0.3, 1.0, 2.0]),
    "attention": st.booleans(),
    "repetition_penalty": st.sampled_from([0.5, 1.0, 1.3, 10.0]),
    "no_repeat_ngram_size": st.integers(-1, 4),
    "suppress_tokens": IDS,
    "suppress_sequences": st.lists(IDS, max_size=3).map(tuple),
    "prefix": IDS,
    "prefix_bias_beta": UNIT,
    "return_alternatives": st.booleans(),
    "min_alternative_prob": UNIT,
    "sampling_temperature": st.sampled_from([0.0, 1e-9, 1.0, 10.0]),
    "sampling_top_k": st.integers(-1, 9),
    "sampling_top_p": UNIT,
    "sampling_seed": st.integers(-1, 2**64),
}


@settings(max_examples=400, deadline=None)
@given(st.fixed_dictionaries({}, optional=DRAWN))
def test_any_options_are_refused_by_name_or_decoded_to_an_end(asked: dict[str, Any]) -> None:
    try:
        options = DecodingOptions(**asked)
    except InvalidArgument as refusal:
        assert any(field in str(refusal) for field in asked)
        return
    (found,) = decode(TINY, [[3, 4, 5, 0]], options)
    assert len(found) <= options.num_hypotheses
    assert all(len(hypothesis.token_log_probs) <= options.max_length for hypothesis in found)


VALID: dict[str, st.SearchStrategy[Any]] = {
    "length_penalty": st.sampled_from([0.0, 0.6]),
    "length_form": st.sampled_from(LengthForm),
    "coverage_penalty": st.sampled_from([0.2, 10.0]),
    "max_length": st.integers(4, 9),
    "min_length": st.integers(0, 4),
    "min_length_ratio": st.sampled_from([0.5, 3.0]),
    "stopping": st.sampled_from(Stopping),
    "repetition_penalty": st.sampled_from([1.3, 10.0]),
    "no_repeat_ngram_size": st.integers(0, 3),
    "suppress_tokens": st.lists(st.integers(0, 7), max_size=7).map(tuple),
    "suppress_sequences": st.lists(st.sampled_from([(0,), (2, 3), (4,), (5, 5)]), max_size=4).map(
        tuple
    ),
    "prefix": st.lists(st.integers(0, 7), max_size=4).map(tuple),
    "attention": st.booleans(),
}


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 5), st.fixed_dictionaries({}, optional=VALID))
def test_options_that_go_together_are_decoded_whatever_they_are(
    beam_size: int, asked: dict[str, Any]
) -> None:
    options = DecodingOptions(beam_size=beam_size, num_hypotheses=beam_size, **asked)
    (found,) = decode(TINY, [[3, 4, 5, 0]], options)
    for hypothesis in found:
        free = hypothesis.ids[len(options.prefix) :]
        assert not set(free) & set(options.suppress_tokens)
        assert hypothesis.ids[: len(options.prefix)] == options.prefix or 0 in options.prefix
