"""Options and rankings between messages and the search."""

from dataclasses import fields
from typing import Any

import pytest

from service.bundle import Limits
from service.decoding import DecodingOptions, LengthForm, Stopping
from service.errors import InvalidArgument
from service.pb import translation_pb2 as pb
from service.rpc.convert import (
    options_from_message,
    options_to_message,
    ranking_from_message,
)
from service.text import Tokenizer
from service.translator import Ranking, Wording
from tests.tiny_bundle import TEXT, VOCABULARY_SIZE
from training.vocabulary import train_vocabulary

TOKENIZER = Tokenizer.from_bytes(train_vocabulary(TEXT * 25, VOCABULARY_SIZE, 1.0))
WORDING = Wording(TOKENIZER, Limits(48, 80))
# Each with a value that isn't the default, and what it needs besides.
ASKED: dict[str, dict[str, Any]] = {
    "beam_size": {"beam_size": 4},
    "num_hypotheses": {"beam_size": 4, "num_hypotheses": 2},
    "length_penalty": {"length_penalty": 0.6},
    "max_length": {"max_length": 77},
    "max_length_ratio": {"max_length_ratio": 2.5},
    "stopping": {"stopping": Stopping.FINISHED},
    "patience": {"stopping": Stopping.FINISHED, "patience": 1.5},
    "shortlist": {"shortlist": False},
    "length_form": {"length_form": LengthForm.WU},
    "coverage_penalty": {"coverage_penalty": 0.2},
    "min_length": {"min_length": 3},
    "min_length_ratio": {"min_length_ratio": 0.5},
    "repetition_penalty": {"repetition_penalty": 1.2},
    "no_repeat_ngram_size": {"no_repeat_ngram_size": 3},
    "return_alternatives": {"return_alternatives": True},
    "min_alternative_prob": {"return_alternatives": True, "min_alternative_prob": 0.1},
    "sampling_temperature": {"sampling_temperature": 0.5},
    "sampling_top_k": {"sampling_temperature": 1.0, "sampling_top_k": 5},
    "sampling_top_p": {"sampling_temperature": 1.0, "sampling_top_p": 0.5},
    "sampling_seed": {"sampling_temperature": 1.0, "sampling_seed": 2**64 - 1},
}
IN_WORDS = {"suppress_tokens", "suppress_sequences", "prefix", "prefix_bias_beta"}


def asked(message: pb.DecodingOptions, **defaults: Any) -> DecodingOptions:
    return options_from_message(message, DecodingOptions(**defaults), WORDING, False, False)


def test_every_option_is_asked_for_here() -> None:
    names = {field.name for field in fields(DecodingOptions)} - {"attention", "attention_heads"}
    assert names == ASKED.keys() | IN_WORDS


@pytest.mark.parametrize("name", ASKED)
def test_an_option_comes_back_from_a_message_as_it_was(name: str) -> None:
    options = DecodingOptions(**ASKED[name])
    assert getattr(options, name) != getattr(DecodingOptions(), name)
    assert asked(options_to_message(options)) == options


def test_an_absent_option_is_the_default_and_zero_is_a_value() -> None:
    defaults = DecodingOptions(beam_size=3, length_penalty=0.7)
    assert options_from_message(pb.DecodingOptions(), defaults, WORDING, False, False) is defaults
    without_penalty = asked(pb.DecodingOptions(length_penalty=0), beam_size=3, length_penalty=0.7)
    assert (without_penalty.length_penalty, without_penalty.beam_size) == (0, 3)


def test_an_unspecified_rule_is_the_default_and_an_unknown_one_is_refused() -> None:
    unspecified = pb.DecodingOptions(
        stopping=pb.STOPPING_UNSPECIFIED, length_form=pb.LENGTH_FORM_UNSPECIFIED
    )
    defaults = {"stopping": Stopping.FINISHED, "length_form": LengthForm.WU}
    assert asked(unspecified, **defaults) == DecodingOptions(**defaults)  # type: ignore[arg-type]
    unknown = pb.DecodingOptions.FromString(b"\x30\x63")  # stopping = 99, of a later version
    with pytest.raises(InvalidArgument, match="stopping is 99"):
        asked(unknown)


def test_words_are_put_into_the_ids_of_the_target() -> None:
    options = asked(
        pb.DecodingOptions(
            prefix="Deux jeunes",
            prefix_bias_beta=0.5,
            suppress_sequences=["la rue", "chiens"],
            forbid_unknown=True,
        )
    )
    assert TOKENIZER.decode(options.prefix) == "Deux jeunes"
    assert [TOKENIZER.decode(ids) for ids in options.suppress_sequences] == ["la rue", "chiens"]
    assert set(options.suppress_tokens) == TOKENIZER.unknown_ids
    assert not set(TOKENIZER.encode("The lazy dog.")) & set(options.suppress_tokens)


def test_an_empty_prefix_is_none() -> None:
    assert asked(pb.DecodingOptions(prefix="")).prefix == ()


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        (pb.DecodingOptions(prefix="a dog " * 60), "prefix has more than 80 tokens"),
        (pb.DecodingOptions(prefix="x" * 10**6), "prefix has more than 80 tokens"),
        (pb.DecodingOptions(prefix="   "), "prefix is blank; leave it out"),
        (pb.DecodingOptions(prefix="\u200b"), "prefix is blank; leave it out"),
        (pb.DecodingOptions(prefix="a man", max_length=1), r"prefix has \d+ tokens but max_length"),
        (pb.DecodingOptions(prefix_bias_beta=0.5), "prefix is empty"),
        (pb.DecodingOptions(suppress_sequences=["a"] * 257), "suppress_sequences has 257 entries"),
        (pb.DecodingOptions(suppress_sequences=["a", " "]), r"suppress_sequences\[1\] is blank"),
        (
            pb.DecodingOptions(suppress_sequences=["a dog " * 20]),
            r"suppress_sequences\[0\] has more than 32 tokens",
        ),
    ],
)
def test_words_that_cannot_be_asked_for_are_refused_by_name(
    message: pb.DecodingOptions, fault: str
) -> None:
    with pytest.raises(InvalidArgument, match=fault):
        asked(message)


def test_a_ranking_is_the_default_but_for_what_is_asked() -> None:
    defaults = DecodingOptions(length_penalty=0.6, length_form=LengthForm.WU)
    plain = ranking_from_message(pb.ScoreRequest(), defaults)
    assert plain == Ranking(0.6, LengthForm.WU)
    request = pb.ScoreRequest(
        length_penalty=0,
        length_form=pb.LENGTH_FORM_PLAIN,
        coverage_penalty=0.2,
        include_attention=True,
    )
    assert ranking_from_message(request, defaults) == Ranking(0, LengthForm.PLAIN, 0.2, True)
    unspecified = pb.ScoreRequest(length_form=pb.LENGTH_FORM_UNSPECIFIED)
    assert ranking_from_message(unspecified, defaults) == plain
