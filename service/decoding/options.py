"""What a caller may ask of the search, validated when it is built."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final

from service.decoding.checking import MIN_RATIO_LENGTH, check
from service.decoding.choices import LengthForm, Stopping

_FILTERS: Final = frozenset(
    (
        "repetition_penalty",
        "min_length",
        "min_length_ratio",
        "no_repeat_ngram_size",
        "suppress_tokens",
        "suppress_sequences",
        "prefix",
        "return_alternatives",
        "min_alternative_prob",
        "sampling_temperature",
    )
)


@dataclass(frozen=True, slots=True)
class DecodingOptions:
    """How one sentence is decoded; ids are of the target vocabulary, lengths count EOS.

    Search and ranking
    beam_size         live beams, 1 to 64; 1 is greedy search
    num_hypotheses    translations to return, best first, at most `beam_size`
    length_penalty    alpha in score = log_prob / length ** alpha, 0 to 10; 0 is off
    length_form       the divisor of `length_penalty`, or ((5 + length) / 6) ** alpha
                      (Wu et al. 2016, section 7, equation 14)
    coverage_penalty  beta in score + beta * sum over the source of log min(coverage, 1), where
                      coverage is the attention that a source token got; 0 to 10, 0 is off (there,
                      equation 15)
    stopping          when the search ends
    patience          `Stopping.FINISHED` waits for round(beam_size * patience) hypotheses; above 0,
                      at most 100 (Kasai et al. 2022)

    Length
    max_length        tokens at most, at least 1
    max_length_ratio  tokens per source token at most, but never fewer than 16; 0 to 100, 0 is off
    min_length        tokens at least, at most `max_length`; 0 is off
    min_length_ratio  tokens per source token at least; 0 to 100, 0 is off

    What may be said
    repetition_penalty    log-probabilities of tokens that were said before are multiplied by it;
                          1 to 10, 1 is off (Keskar et al. 2019, section 4.1, on log-probabilities)
    no_repeat_ngram_size  no sequence of so many tokens comes twice; 0 to 32, 0 is off (Paulus et
                          al. 2017, section 2.5)
    suppress_tokens       ids that are never chosen, at most 1024; none is off
    suppress_sequences    sequences that never come, at most 256 of 1 to 32 ids; none is off

    A given beginning
    prefix                ids that the translation begins with, at most `max_length`; none is off.
                          They are exempt from what may be said. EOS at its end makes it a whole
                          translation, which is scored
    prefix_bias_beta      p becomes (1 - beta) * p + beta for the prefix's next token, while a beam
                          agrees with the prefix, instead of forcing it; 0 to below 1, 0 forces
    return_alternatives   the likeliest `beam_size` tokens after the prefix each begin a hypothesis,
                          which goes on greedily
    min_alternative_prob  of such a token at least; 0 to 1, 0 is off

    Sampling (Holtzman et al. 2020 for top-p)
    sampling_temperature  tokens are drawn from p ** (1 / temperature); 0 to 10, 0 is off
    sampling_top_k        from the k likeliest only; at least 0, 0 is off
    sampling_top_p        from the likeliest that have this probability together; above 0 to 1, 1
                          is off
    sampling_seed         the same seed draws the same translation of a sentence; 0 to 2**64 - 1

    attention         whether hypotheses carry their attention
    attention_heads   whether they also carry that of each head; only with `attention`
    shortlist         choose from the words that the source is likely to become, and from common
                      ones, where the model knows them; log-probabilities are then among these
                      (Jean et al. 2015, section 3.2). Never with a prefix or sampling

    Log-probabilities are the model's own: what a ban leaves isn't rescaled, so that translations
    compare by what the model thinks of them, and forcing one gives the same numbers.

    Raises InvalidArgument for a value out of its range and for options that contradict each other.
    """

    beam_size: int = 1
    num_hypotheses: int = 1
    length_penalty: float = 1.0
    max_length: int = 256
    max_length_ratio: float = 3.0
    stopping: Stopping = Stopping.BEST
    patience: float = 1.0
    attention: bool = False
    attention_heads: bool = False
    shortlist: bool = True
    length_form: LengthForm = LengthForm.PLAIN
    coverage_penalty: float = 0.0
    min_length: int = 0
    min_length_ratio: float = 0.0
    repetition_penalty: float = 1.0
    no_repeat_ngram_size: int = 0
    suppress_tokens: tuple[int, ...] = ()
    suppress_sequences: tuple[tuple[int, ...], ...] = ()
    prefix: tuple[int, ...] = ()
    prefix_bias_beta: float = 0.0
    return_alternatives: bool = False
    min_alternative_prob: float = 0.0
    sampling_temperature: float = 0.0
    sampling_top_k: int = 0
    sampling_top_p: float = 1.0
    sampling_seed: int = 0

    def __post_init__(self) -> None:
        check(self)

    @classmethod
    def forcing(cls, target: Sequence[int], eos_id: int) -> "DecodingOptions":
        """Options under which the only hypothesis is `target`, given without EOS."""
        prefix = (*target, eos_id)
        return cls(prefix=prefix, max_length=len(prefix), max_length_ratio=0, attention=True)

    @property
    def patience_count(self) -> int:
        """Hypotheses that `Stopping.FINISHED` waits for; halves round up, as in ctranslate2."""
        return math.floor(self.beam_size * self.patience + 0.5)

    @property
    def is_filtered(self) -> bool:
        """Whether anything has a say in which tokens may follow but the model."""
        return (
            self.needs_everything
            or self.repetition_penalty != 1
            or bool(self.min_length or self.min_length_ratio or self.no_repeat_ngram_size)
            or bool(self.suppress_tokens or self.suppress_sequences)
            or self.return_alternatives
        )

    @property
    def filters(self) -> tuple[str, ...]:
        """The names of those options, where they are on."""
        named = (each for each in fields(self) if each.name in _FILTERS)
        return tuple(each.name for each in named if getattr(self, each.name) != each.default)

    @property
    def needs_everything(self) -> bool:
        """Whether some step may have to see the log-probability of every token, not of the best."""
        return bool(self.prefix) or self.sampling_temperature > 0

    @property
    def uses_shortlist(self) -> bool:
        return self.shortlist and not self.needs_everything

    @property
    def largest_id(self) -> int:
        """Of all ids named; -1 if there are none. A model must have a token of that id."""
        ids = (*self.suppress_tokens, *self.prefix, *map(max, self.suppress_sequences))
        return max(ids, default=-1)

    def length_limit(self, source_length: int) -> int:
        """Target tokens that a source of `source_length` tokens with EOS may get.

        No ratio cuts a prefix.
        """
        if self.max_length_ratio == 0:
            return self.max_length
        by_ratio = max(MIN_RATIO_LENGTH, self.max_length_ratio * source_length, len(self.prefix))
        return math.ceil(min(self.max_length, by_ratio))

    def least_length(self, source_length: int) -> int:
        """Target tokens that such a source must get, unless the limit comes first."""
        return max(self.min_length, math.ceil(self.min_length_ratio * source_length))

    def length_divisor(self, length: float) -> float:
        """What the log-probability of a hypothesis of that length is divided by."""
        offset = self.length_offset
        return float(((length + offset) / (1 + offset)) ** self.length_penalty)

    @property
    def length_offset(self) -> int:
        """c in ((c + length) / (c + 1)) ** alpha."""
        return 5 if self.length_form is LengthForm.WU else 0
