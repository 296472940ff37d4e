"""The ranges of `DecodingOptions`, and which of them contradict each other."""

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from service.decoding.choices import Stopping
from service.errors import InvalidArgument

if TYPE_CHECKING:
    from service.decoding.options import DecodingOptions

MAX_BEAM_SIZE: Final = 64
MAX_PENALTY: Final = 10.0
MAX_LENGTH_RATIO: Final = 100.0
MAX_PATIENCE: Final = 100.0
MAX_NGRAM_SIZE: Final = 32
MAX_SUPPRESSED_TOKENS: Final = 1024
MAX_SUPPRESSED_SEQUENCES: Final = 256
MAX_SEQUENCE_LENGTH: Final = 32
MAX_TEMPERATURE: Final = 10.0
MAX_ID: Final = 2**31 - 1
MAX_SEED: Final = 2**64 - 1
# A ratio of a very short source would cut good translations; no ratio limits below this many.
MIN_RATIO_LENGTH: Final = 16

# Field, lowest and highest value.
_RANGES: Final = (
    ("beam_size", 1, MAX_BEAM_SIZE),
    ("num_hypotheses", 1, MAX_BEAM_SIZE),
    ("length_penalty", 0, MAX_PENALTY),
    ("coverage_penalty", 0, MAX_PENALTY),
    ("max_length", 1, math.inf),
    ("max_length_ratio", 0, MAX_LENGTH_RATIO),
    ("min_length", 0, math.inf),
    ("min_length_ratio", 0, MAX_LENGTH_RATIO),
    ("repetition_penalty", 1, MAX_PENALTY),
    ("no_repeat_ngram_size", 0, MAX_NGRAM_SIZE),
    ("min_alternative_prob", 0, 1),
    ("sampling_temperature", 0, MAX_TEMPERATURE),
    ("sampling_top_k", 0, math.inf),
    ("sampling_seed", 0, MAX_SEED),
)


def check(options: "DecodingOptions") -> None:
    """Raises InvalidArgument that names the option at fault, its value and its limit."""
    _check_ranges(options)
    _check_ids(options)
    for fault in _contradictions(options):
        raise InvalidArgument(fault)


def _check_ranges(options: "DecodingOptions") -> None:
    for field, low, high in _RANGES:
        _check_range(field, getattr(options, field), low, high)
    _check_above_zero("patience", options.patience, MAX_PATIENCE)
    _check_above_zero("sampling_top_p", options.sampling_top_p, 1.0)
    if not 0 <= options.prefix_bias_beta < 1:
        raise InvalidArgument(
            f"prefix_bias_beta is {options.prefix_bias_beta}; it must be from 0 to below 1"
        )


def _check_range(field: str, value: float, low: float, high: float) -> None:
    # Written so that NaN, which compares false with everything, is refused as well.
    if not (low <= value <= high and math.isfinite(value)):
        limit = f"from {low} to {high:g}" if math.isfinite(high) else f"at least {low} and finite"
        raise InvalidArgument(f"{field} is {value}; it must be {limit}")


def _check_above_zero(field: str, value: float, high: float) -> None:
    if not 0 < value <= high:
        raise InvalidArgument(f"{field} is {value}; it must be positive and at most {high:g}")


def _check_ids(options: "DecodingOptions") -> None:
    _check_each_id("prefix", options.prefix)
    _check_count("suppress_tokens", options.suppress_tokens, 0, MAX_SUPPRESSED_TOKENS)
    _check_each_id("suppress_tokens", options.suppress_tokens)
    sequences = options.suppress_sequences
    _check_count("suppress_sequences", sequences, 0, MAX_SUPPRESSED_SEQUENCES)
    for sequence in sequences:
        _check_count("a sequence of suppress_sequences", sequence, 1, MAX_SEQUENCE_LENGTH)
        _check_each_id("suppress_sequences", sequence)


def _check_count(field: str, values: Sequence[object], low: int, high: int) -> None:
    if not low <= len(values) <= high:
        raise InvalidArgument(f"{field} has {len(values)} entries; it must have {low} to {high}")


def _check_each_id(field: str, ids: Sequence[int]) -> None:
    if ids and not 0 <= min(ids) <= max(ids) <= MAX_ID:
        wrong = next(id for id in ids if not 0 <= id <= MAX_ID)
        raise InvalidArgument(f"{field} has the id {wrong}; ids are from 0 to {MAX_ID}")


def _contradictions(options: "DecodingOptions") -> Iterator[str]:
    yield from _of_hypotheses(options)
    yield from _of_lengths(options)
    yield from _of_the_prefix(options)
    yield from _of_sampling(options)


def _of_hypotheses(options: "DecodingOptions") -> Iterator[str]:
    if options.num_hypotheses > options.beam_size:
        yield (
            f"num_hypotheses is {options.num_hypotheses} but beam_size is {options.beam_size}; "
            "a beam yields at most beam_size hypotheses: raise beam_size or ask for fewer"
        )
    if options.stopping is Stopping.BEST and options.patience != 1:
        yield (
            f"patience is {options.patience} but stopping is BEST, which has no patience; "
            "set stopping to FINISHED or leave patience at 1"
        )
    if options.stopping is Stopping.FINISHED and options.num_hypotheses > options.patience_count:
        yield (
            f"num_hypotheses is {options.num_hypotheses} but patience {options.patience} stops at "
            f"{options.patience_count} of beam_size {options.beam_size}; "
            "raise patience or ask for fewer"
        )
    if options.attention_heads and not options.attention:
        yield "attention_heads is set without attention, which is their mean; ask for both"


def _of_lengths(options: "DecodingOptions") -> Iterator[str]:
    if options.min_length > options.max_length:
        yield (
            f"min_length is {options.min_length} but max_length is {options.max_length}; "
            "lower one or raise the other"
        )
    if 0 < options.max_length_ratio < options.min_length_ratio:
        yield (
            f"min_length_ratio is {options.min_length_ratio} but max_length_ratio is "
            f"{options.max_length_ratio}; lower one or raise the other"
        )
    if len(options.prefix) > options.max_length:
        yield (
            f"prefix has {len(options.prefix)} tokens but max_length is {options.max_length}; "
            "shorten one or raise the other"
        )


def _of_the_prefix(options: "DecodingOptions") -> Iterator[str]:
    if options.prefix_bias_beta and not options.prefix:
        yield (
            f"prefix_bias_beta is {options.prefix_bias_beta} but prefix is empty; "
            "give a prefix or leave prefix_bias_beta at 0"
        )
    if options.prefix_bias_beta and options.return_alternatives:
        yield (
            f"prefix_bias_beta is {options.prefix_bias_beta} but return_alternatives is set, which "
            "needs a position that all beams come to; leave prefix_bias_beta at 0"
        )
    if options.return_alternatives and options.num_hypotheses != options.beam_size:
        yield (
            f"return_alternatives is set and num_hypotheses is {options.num_hypotheses} but "
            f"beam_size is {options.beam_size}; each alternative is a beam: make them equal"
        )
    if options.min_alternative_prob and not options.return_alternatives:
        yield (
            f"min_alternative_prob is {options.min_alternative_prob} but return_alternatives is "
            "not set; set it or leave min_alternative_prob at 0"
        )


def _of_sampling(options: "DecodingOptions") -> Iterator[str]:
    temperature = options.sampling_temperature
    if temperature and options.beam_size > 1:
        yield (
            f"sampling_temperature is {temperature} but beam_size is {options.beam_size}; a sample "
            "has no beam: set beam_size to 1, and ask again with another seed for another sample"
        )
    if temperature and options.return_alternatives:
        yield (
            f"sampling_temperature is {temperature} but return_alternatives is set, whose "
            "alternatives go on greedily; leave sampling_temperature at 0"
        )
    for field, off in (("sampling_top_k", 0), ("sampling_top_p", 1), ("sampling_seed", 0)):
        if not temperature and (value := getattr(options, field)) != off:
            yield (
                f"{field} is {value} but sampling_temperature is 0, so that nothing is drawn; "
                f"set it or leave {field} at {off}"
            )
