"""Options of the search: what is refused, and how the message helps."""

import math

import pytest

from service.decoding import DecodingOptions, Stopping
from service.errors import InvalidArgument


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
    ],
)
def test_a_value_out_of_range_is_named_with_its_limit(field: str, value: float, limit: str) -> None:
    with pytest.raises(InvalidArgument) as error:
        DecodingOptions(**{field: value})  # type: ignore[arg-type]
    message = str(error.value)
    assert field in message and str(value) in message and limit in message


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
