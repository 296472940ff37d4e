"""What a model thinks of given translations: forced decoding, beside everybody else's sentences.

Both texts are taken as they are, but for the white space around them: nothing is split, hidden from
the model or changed in case.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from service.batching import Request
from service.bundle import Manifest
from service.decoding import DecodingOptions, Hypothesis, LengthForm
from service.engine import Engine
from service.errors import InvalidArgument
from service.text import Token, Tokenizer
from service.translator.results import END_OF_SENTENCE, Attention, PairScore, TokenScores
from service.translator.size import check_size, fitting, pair_bytes
from service.translator.windows import MAX_AT_ONCE, decode, foreseen
from service.translator.wording import MAX_CHARACTERS_A_TOKEN

# Code points that are read on the event loop if that is all, in a millisecond.
_MAX_INLINE_LENGTH = 512


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence and its translation."""

    source: str
    target: str

    def __len__(self) -> int:
        """Code points of both."""
        return len(self.source) + len(self.target)


@dataclass(frozen=True, slots=True)
class Ranking:
    """What the score is made of, and whether attention comes with it, as in `DecodingOptions`."""

    length_penalty: float = 1.0
    length_form: LengthForm = LengthForm.PLAIN
    coverage_penalty: float = 0.0
    attention: bool = False
    attention_heads: bool = False

    @classmethod
    def of(cls, options: DecodingOptions) -> "Ranking":
        return cls(options.length_penalty, options.length_form, options.coverage_penalty)

    def forcing(self, target_ids: Sequence[int], eos_id: int) -> DecodingOptions:
        """Raises InvalidArgument for a value out of its range."""
        return replace(
            DecodingOptions.forcing(target_ids, eos_id),
            length_penalty=self.length_penalty,
            length_form=self.length_form,
            coverage_penalty=self.coverage_penalty,
            attention=self.attention,
            attention_heads=self.attention_heads,
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Read:
    """A pair as the model reads it, without the ends of the sentences."""

    source: tuple[Token, ...]
    target: tuple[Token, ...]


class Scorer:
    """Scores pairs with one model. Thread-safe."""

    def __init__(
        self, manifest: Manifest, engine: Engine, tokenizers: tuple[Tokenizer, Tokenizer]
    ) -> None:
        self._name = manifest.name
        self._eos = manifest.special_ids.eos
        self._limits = manifest.limits
        self._num_heads = manifest.attention.num_heads
        self._engine = engine
        self._source, self._target = tokenizers

    async def scores(
        self,
        pairs: Sequence[Pair],
        ranking: Ranking,
        deadline: float | None,
        max_bytes: int | None,
    ) -> list[PairScore]:
        """See `Translator.score_async`."""
        request = foreseen([len(pair.source) for pair in pairs], 1, deadline)
        with self._engine.room_for(request):
            return await self._decoded(pairs, ranking, request, max_bytes)

    async def _decoded(
        self,
        pairs: Sequence[Pair],
        ranking: Ranking,
        request: Request,
        max_bytes: int | None,
    ) -> list[PairScore]:
        if sum(map(len, pairs)) <= _MAX_INLINE_LENGTH:
            read = self._read(pairs)
        else:
            read = await asyncio.to_thread(self._read, pairs)
        sources = [[*_ids(each.source), self._eos] for each in read]
        options = [ranking.forcing(_ids(each.target), self._eos) for each in read]
        at_once = MAX_AT_ONCE
        if longest := max(options, key=lambda option: option.max_length, default=None):
            at_once = min(at_once, fitting(sources, longest, max_bytes, self._num_heads))
        remaining, found, size = iter(read), list[PairScore](), 0

        async def take(results: list[list[Hypothesis]]) -> None:
            nonlocal size
            for each, (result,) in zip(islice(remaining, len(results)), results, strict=True):
                found.append(self._score(each, result))
                size += pair_bytes(found[-1])
                check_size(size, max_bytes)

        await decode(self._engine, sources, options, request, take, at_once)
        return found

    def _read(self, pairs: Sequence[Pair]) -> list[_Read]:
        return [self._pair(index, pair) for index, pair in enumerate(pairs)]

    def _pair(self, index: int, pair: Pair) -> _Read:
        limits, name = self._limits, f"pairs[{index}]"
        read = _Read(
            self._tokens(f"{name}.source", self._source, pair.source, limits.max_source_tokens),
            self._tokens(f"{name}.target", self._target, pair.target, limits.max_target_tokens),
        )
        # Zero-width characters are no white space, but no tokens either.
        if not read.source:
            raise InvalidArgument(f"{name}.source is blank; there is nothing to translate")
        return read

    def _tokens(self, name: str, tokenizer: Tokenizer, text: str, limit: int) -> tuple[Token, ...]:
        if len(text.strip()) <= limit * MAX_CHARACTERS_A_TOKEN:
            tokens = tokenizer.encode_tokens(text)
            if len(tokens) < limit:
                return tuple(tokens)
        raise InvalidArgument(
            f"{name} has more than {limit} tokens with the end of the sentence, the limit of "
            f"{self._name}; score it in parts"
        )

    def _score(self, read: _Read, result: Hypothesis) -> PairScore:
        attention = None
        if result.attention is not None:
            end = max(token.end for token in read.source)
            source = (*read.source, Token(self._eos, END_OF_SENTENCE, end, end))
            attention = Attention(source, read.target, result.attention, result.attention_heads)
        return PairScore(
            log_prob=result.log_prob,
            score=result.score,
            token_scores=TokenScores(read.target, result.token_log_probs),
            source_token_count=len(read.source) + 1,
            attention=attention,
        )


def _ids(tokens: Sequence[Token]) -> list[int]:
    return [token.id for token in tokens]
