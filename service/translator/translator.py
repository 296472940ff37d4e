"""`Translator`: one served model, from texts to translations."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice, pairwise

from service.batching import Request
from service.bundle import Bundle, Manifest
from service.decoding import DecodingOptions, Hypothesis
from service.engine import Engine
from service.text import Tokenizer
from service.translator.document import Unit
from service.translator.entrance import Entrance
from service.translator.options import NO_EXTRAS, Extras, TextOptions
from service.translator.patience import Patience
from service.translator.reader import Reader, take
from service.translator.results import PairScore, TranslatedHypothesis, Translation
from service.translator.scoring import Pair, Ranking, Scorer
from service.translator.size import (
    MAX_INLINE_BYTES,
    check_size,
    fitting,
    hypothesis_bytes,
)
from service.translator.windows import MAX_AT_ONCE, decode, foreseen
from service.translator.wording import Wording
from service.translator.writer import Writer, translations

# Code points that are read on the event loop if that is all, in a millisecond; the worst, that no
# piece spells, in a few.
_MAX_INLINE_LENGTH = 512
# What a term or a span costs, in code points.
_ITEM_LENGTH = 4
# Code points that are read at once elsewhere.
_MAX_READ_LENGTH = 4096
# What is written at once on the event loop, in a millisecond or two: see `Writer.cost`.
_MAX_INLINE_COST = 2048
# Units that are put together at once after they were written, a tenth of a millisecond.
_MAX_WITHOUT_TURN = 16


class Translator:
    """One served model: its engine, with its tokenizers and its manifest around it. Thread-safe."""

    def __init__(self, bundle: Bundle, engine: Engine) -> None:
        self.manifest: Manifest = bundle.manifest
        self.engine = engine
        source = Tokenizer.from_bytes(
            bundle.tokenizer_bytes("source"), bundle.manifest.source_prefix
        )
        target = Tokenizer.from_bytes(bundle.tokenizer_bytes("target"))
        self._tokenizers = source, target
        self._reader = Reader(bundle.manifest, source)
        self._scorer = Scorer(bundle.manifest, engine, self._tokenizers)
        self.wording = Wording(target, bundle.manifest.limits)
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
        text_options: TextOptions | None = None,
        extras: Extras = NO_EXTRAS,
    ) -> list[Translation]:
        """`translate_async` for a thread without an event loop; waits for the last translation."""
        work = self.translate_async(contents, options, deadline, text_options, None, extras)
        return asyncio.run(work)

    async def translate_async(
        self,
        contents: Sequence[str],
        options: DecodingOptions | None = None,
        deadline: float | None = None,
        text_options: TextOptions | None = None,
        max_bytes: int | None = None,
        extras: Extras = NO_EXTRAS,
        entrance: Entrance | None = None,
    ) -> list[Translation]:
        """Translates each text by itself, in order. Cancelling it frees the rows at the next step.

        options: of every sentence; but a prefix is that of a text, so of its first sentence.
        deadline: seconds on the monotonic clock. max_bytes: of the message that the translations
        will be. entrance: of the stream that the texts are from; by default they are a request of
        their own, which is refused without room. Raises InvalidArgument (a text that is not Unicode
        or has a sentence too long to be accepted, named by its index) before anything is
        translated, and as soon as there is more than `max_bytes`; and what `Engine.submit_all` and
        its futures raise.
        """
        options = options or self.default_options
        text_options = text_options or TextOptions()
        writer = Writer(
            self.manifest,
            self._tokenizers,
            no_break_spaces=text_options.no_break_spaces,
            attention=options.attention,
            extras=extras,
        )
        request = foreseen([*map(len, contents)], options.beam_size, deadline)
        entrance = entrance or Entrance(request)
        with entrance.room(self.engine):
            units = await self._read(contents, text_options, deadline)
            hypotheses, size = await self._decode(
                units, options, request, entrance, writer, max_bytes
            )
        if len(units) <= MAX_AT_ONCE and size <= MAX_INLINE_BYTES:
            if len(units) > _MAX_WITHOUT_TURN:
                await asyncio.sleep(0)  # whoever waits has his turn between two pieces of work
            return translations(contents, units, hypotheses)
        return await asyncio.to_thread(translations, contents, units, hypotheses)

    async def score_async(
        self,
        pairs: Sequence[Pair],
        ranking: Ranking | None = None,
        deadline: float | None = None,
        max_bytes: int | None = None,
    ) -> list[PairScore]:
        """What the model thinks of each pair, in order; ranking: by default that of translating.

        Raises InvalidArgument, naming the pair by its index, before anything is decoded; and
        otherwise what `translate_async` does.
        """
        ranking = ranking or Ranking.of(self.default_options)
        return await self._scorer.scores(pairs, ranking, deadline, max_bytes)

    async def _read(
        self, contents: Sequence[str], options: TextOptions, deadline: float | None
    ) -> list[Unit]:
        """All units; long texts are read off the event loop, bit by bit to keep others going."""
        length = sum(map(len, contents)) + _ITEM_LENGTH * options.num_items
        if length <= _MAX_INLINE_LENGTH:
            return list(self._reader.units(contents, options))
        patience, read = Patience(deadline), list[Unit]()
        units = self._reader.units(contents, options, patience.check)
        try:
            while some := await asyncio.to_thread(take, units, _MAX_READ_LENGTH):
                read += some
        finally:
            patience.end()
        return read

    async def _decode(
        self,
        units: Sequence[Unit],
        options: DecodingOptions,
        request: Request,
        entrance: Entrance,
        writer: Writer,
        max_bytes: int | None,
    ) -> tuple[list[tuple[TranslatedHypothesis, ...]], int]:
        """The hypotheses of the units that have ids, and how many bytes they take at least."""
        translatable = [unit for unit in units if unit.ids]
        if writer.needs_attention or any([unit.needs_attention for unit in translatable]):
            options = replace(options, attention=True)
        sources = [unit.ids for unit in translatable]
        each = _of_each(translatable, options)
        num_heads = self.manifest.attention.num_heads
        at_once = min(MAX_AT_ONCE, fitting(sources, options, max_bytes, num_heads))
        remaining, found, size = iter(translatable), list[tuple[TranslatedHypothesis, ...]](), 0

        async def take(results: list[list[Hypothesis]]) -> None:
            nonlocal size
            written = await _written(writer, [*islice(remaining, len(results))], results)
            found.extend(written)
            size += sum(map(hypothesis_bytes, written))
            check_size(size, max_bytes)

        await decode(self.engine, sources, each, request, take, at_once, entrance)
        return found, size


def _of_each(units: Sequence[Unit], options: DecodingOptions) -> list[DecodingOptions]:
    """The options of each unit: a prefix is that of the first one of its document."""
    if not options.prefix:
        return [options] * len(units)
    others = replace(options, prefix=(), prefix_bias_beta=0.0)
    begun = [unit.document for unit in units]
    firsts = [before is not now for before, now in pairwise([None, *begun])]
    return [options if is_first else others for is_first in firsts]


async def _written(
    writer: Writer, units: Sequence[Unit], results: Sequence[Sequence[Hypothesis]]
) -> list[tuple[TranslatedHypothesis, ...]]:
    """The hypotheses of each unit as text; much of it is written off the event loop."""
    if sum(map(writer.cost, units, results)) <= _MAX_INLINE_COST:
        return list(map(writer.hypotheses, units, results))
    return await asyncio.to_thread(lambda: list(map(writer.hypotheses, units, results)))
