"""Texts in, translations out: what `rpc` and the command line call.

Owns the way of a text through one model: white space set aside, text with nothing to translate
passed through, tokens counted against the model's limit, sentences decoded by the engine, spans of
tokens brought back to the texts as the caller knows them. Knows no protobuf and no grpc.

    "  Hello world.\n"  ->  layout "  " | "Hello world." | "\n"
                        ->  ids + EOS  ->  engine  ->  hypotheses
                        ->  "  " + "Bonjour le monde." + "\n"
"""

import asyncio
import itertools
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.bundle import Bundle, Manifest
from service.decoding import DecodingOptions, FinishReason, Hypothesis
from service.engine import Engine
from service.errors import InvalidArgument
from service.text import Layout, Token, Tokenizer, is_translatable, split_layout

# Code points of one request that are tokenised on the event loop, in about a millisecond.
_MAX_INLINE_LENGTH = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Attention:
    """Where the model looked in the source (columns) for each target token (rows).

    source_tokens: all of the sentence; the last is the end of the sentence, with an empty span.
        Spans index the caller's text.
    target_tokens: without the end of the sentence. Spans index `Translation.text`, with the
        hypothesis at hand in the place of the first one.
    weights: (target_tokens, source_tokens) float32; rows sum to 1.
    """

    source_tokens: tuple[Token, ...]
    target_tokens: tuple[Token, ...]
    weights: NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class TranslatedHypothesis:
    """One way to translate a sentence; numbers as in `decoding.Hypothesis`.

    token_count: target tokens, with the end of the sentence if the model chose it.
    attention: None unless `DecodingOptions.attention` asked for it.
    """

    text: str
    log_prob: float
    score: float
    finish_reason: FinishReason
    token_count: int
    attention: Attention | None


@dataclass(frozen=True, slots=True, eq=False)
class SentenceResult:
    """One unit of decoding.

    source, target: half-open spans in the caller's text and in `Translation.text`.
    source_token_count: with the end of the sentence.
    hypotheses: best first, at least one.
    """

    source: tuple[int, int]
    target: tuple[int, int]
    source_token_count: int
    hypotheses: tuple[TranslatedHypothesis, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Translation:
    """The translation of one text; one without sentences passed through, and is the text itself."""

    text: str
    sentences: tuple[SentenceResult, ...] = ()

    @property
    def passed_through(self) -> bool:
        return not self.sentences


@dataclass(frozen=True, slots=True)
class _Segment:
    """A text with the source ids of its core, EOS included; without ids it passes through."""

    text: str
    layout: Layout
    ids: list[int]


class Translator:
    """One served model: its engine, with its tokenizers and its manifest around it. Thread-safe."""

    def __init__(self, bundle: Bundle, engine: Engine) -> None:
        self.manifest: Manifest = bundle.manifest
        self.engine = engine
        self._source = Tokenizer.from_bytes(bundle.tokenizer_bytes("source"))
        self._target = Tokenizer.from_bytes(bundle.tokenizer_bytes("target"))
        search = bundle.manifest.search
        self.default_options = DecodingOptions(
            beam_size=search.beam_size,
            length_penalty=search.length_penalty,
            max_length=search.max_length,
            max_length_ratio=search.max_length_ratio,
        )

    @property
    def name(self) -> str:
        return self.manifest.name

    def translate(
        self,
        contents: Sequence[str],
        options: DecodingOptions | None = None,
        deadline: float | None = None,
    ) -> list[Translation]:
        """Translates each text by itself, in order; waits for the last one.

        deadline: seconds on the monotonic clock. Raises InvalidArgument (a text that is not
        Unicode or too long, named by its index) before anything is translated, and what
        `Engine.submit_all` and its futures raise.
        """
        options = options or self.default_options
        segments = self._segments(contents)
        futures = self._submit(segments, options, deadline)
        try:
            return self._translations(segments, [future.result() for future in futures])
        finally:
            _cancel(futures)

    async def translate_async(
        self,
        contents: Sequence[str],
        options: DecodingOptions | None = None,
        deadline: float | None = None,
    ) -> list[Translation]:
        """`translate` for an event loop: cancelling it frees the rows at the next step."""
        options = options or self.default_options
        if sum(map(len, contents)) <= _MAX_INLINE_LENGTH:
            segments = self._segments(contents)
        else:
            segments = await asyncio.to_thread(self._segments, contents)
        futures = self._submit(segments, options, deadline)
        try:
            await _settled(futures)
            return self._translations(segments, [future.result() for future in futures])
        finally:
            _cancel(futures)

    def _segments(self, contents: Sequence[str]) -> list[_Segment]:
        return [self._segment(index, text) for index, text in enumerate(contents)]

    def _segment(self, index: int, text: str) -> _Segment:
        _require_unicode(index, text)
        layout = split_layout(text)
        ids = self._source.encode(layout.core) if is_translatable(layout.core) else []
        if not ids:
            return _Segment(text, layout, [])
        ids.append(self.manifest.special_ids.eos)
        limit = self.manifest.limits.max_source_tokens
        if len(ids) > limit:
            raise InvalidArgument(
                f"contents[{index}] has {len(ids)} tokens, the limit of {self.name} is {limit}; "
                "split it into shorter texts"
            )
        return _Segment(text, layout, ids)

    def _submit(
        self, segments: Sequence[_Segment], options: DecodingOptions, deadline: float | None
    ) -> list[Future[list[Hypothesis]]]:
        sources = [segment.ids for segment in segments if segment.ids]
        return self.engine.submit_all(sources, options, deadline)

    def _translations(
        self, segments: Sequence[_Segment], results: Sequence[Sequence[Hypothesis]]
    ) -> list[Translation]:
        remaining = iter(results)
        return [
            self._translation(segment, next(remaining))
            if segment.ids
            else Translation(segment.text)
            for segment in segments
        ]

    def _translation(self, segment: _Segment, results: Sequence[Hypothesis]) -> Translation:
        prefix, core, suffix = segment.layout.prefix, segment.layout.core, segment.layout.suffix
        hypotheses = tuple(self._hypothesis(segment, result) for result in results)
        start, text = len(prefix), hypotheses[0].text
        sentence = SentenceResult(
            source=(start, start + len(core)),
            target=(start, start + len(text)),
            source_token_count=len(segment.ids),
            hypotheses=hypotheses,
        )
        return Translation(prefix + text + suffix, (sentence,))

    def _hypothesis(self, segment: _Segment, result: Hypothesis) -> TranslatedHypothesis:
        if result.attention is None:
            text, attention = self._target.decode(result.ids), None
        else:
            text, attention = self._with_attention(segment, result.ids, result.attention)
        return TranslatedHypothesis(
            text,
            result.log_prob,
            result.score,
            result.finish_reason,
            len(result.token_log_probs),
            attention,
        )

    def _with_attention(
        self, segment: _Segment, ids: Sequence[int], weights: NDArray[np.float32]
    ) -> tuple[str, Attention]:
        offset, core = len(segment.layout.prefix), segment.layout.core
        text, target_tokens = self._target.decode_tokens(ids)
        source_tokens = self._source.encode_tokens(core)
        end = Token(segment.ids[-1], "</s>", len(core), len(core))
        return text, Attention(
            _shifted([*source_tokens, end], offset), _shifted(target_tokens, offset), weights
        )


def _require_unicode(index: int, text: str) -> None:
    """Refuses lone surrogates, which no encoding and so no tokenizer takes."""
    try:
        text.encode()
    except UnicodeEncodeError as exc:
        raise InvalidArgument(
            f"contents[{index}] has a lone surrogate at {exc.start}; send valid Unicode"
        ) from exc


def _shifted(tokens: Sequence[Token], offset: int) -> tuple[Token, ...]:
    return tuple(
        Token(token.id, token.piece, token.start + offset, token.end + offset) for token in tokens
    )


def _cancel(futures: Sequence[Future[list[Hypothesis]]]) -> None:
    """Leaves the rest to nobody; does nothing to futures that are done."""
    for future in futures:
        future.cancel()


async def _settled(futures: Sequence[Future[list[Hypothesis]]]) -> None:
    """Waits for all futures, or raises the first failure; wakes the loop once, not once each."""
    if not futures:
        return
    loop = asyncio.get_running_loop()
    settled = loop.create_future()
    numbers = itertools.count(1)  # its `next` is atomic, and workers call it side by side

    def settle(error: BaseException | None) -> None:
        if not settled.done():
            settled.set_exception(error) if error else settled.set_result(None)

    def count(future: Future[list[Hypothesis]]) -> None:
        is_last = next(numbers) == len(futures)
        if not future.cancelled() and (is_last or future.exception()):
            loop.call_soon_threadsafe(settle, future.exception())

    for future in futures:
        future.add_done_callback(count)
    await settled
