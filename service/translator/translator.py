"""`Translator`: one served model, from texts to translations."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from itertools import islice

from service.bundle import Bundle, Manifest
from service.decoding import DecodingOptions, Hypothesis
from service.engine import Engine
from service.text import Tokenizer
from service.translator.document import Unit
from service.translator.options import TextOptions
from service.translator.patience import Patience
from service.translator.reader import Reader, take
from service.translator.results import TranslatedHypothesis, Translation
from service.translator.size import (
    MAX_INLINE_BYTES,
    check_size,
    fitting,
    hypothesis_bytes,
)
from service.translator.windows import MAX_AT_ONCE, decoded
from service.translator.writer import Writer, translations

# Code points that are read on the event loop if that is all, in a millisecond; the worst, that no
# piece spells, in a few.
_MAX_INLINE_LENGTH = 512
# Code points that are read at once elsewhere.
_MAX_READ_LENGTH = 4096
# What is written at once on the event loop, in a millisecond or two: see `Writer.cost`.
_MAX_INLINE_COST = 2048


class Translator:
    """One served model: its engine, with its tokenizers and its manifest around it. Thread-safe."""

    def __init__(self, bundle: Bundle, engine: Engine) -> None:
        self.manifest: Manifest = bundle.manifest
        self.engine = engine
        source = Tokenizer.from_bytes(bundle.tokenizer_bytes("source"))
        target = Tokenizer.from_bytes(bundle.tokenizer_bytes("target"))
        self._tokenizers = source, target
        self._reader = Reader(bundle.manifest, source)
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
    ) -> list[Translation]:
        """`translate_async` for a thread without an event loop; waits for the last translation."""
        return asyncio.run(self.translate_async(contents, options, deadline, text_options))

    async def translate_async(
        self,
        contents: Sequence[str],
        options: DecodingOptions | None = None,
        deadline: float | None = None,
        text_options: TextOptions | None = None,
        max_bytes: int | None = None,
    ) -> list[Translation]:
        """Translates each text by itself, in order. Cancelling it frees the rows at the next step.

        deadline: seconds on the monotonic clock. max_bytes: of the message that the translations
        will be. Raises InvalidArgument (a text that is not Unicode or has a sentence too long to be
        accepted, named by its index) before anything is translated, and as soon as there is more
        than `max_bytes`; and what `Engine.submit_all` and its futures raise.
        """
        options = options or self.default_options
        text_options = text_options or TextOptions()
        units = await self._read(contents, text_options, deadline)
        writer = Writer(
            self.manifest,
            self._tokenizers,
            no_break_spaces=text_options.no_break_spaces,
            attention=options.attention,
        )
        hypotheses = await self._decode(units, options, deadline, writer, max_bytes)
        size = sum(map(hypothesis_bytes, hypotheses))
        if len(units) <= MAX_AT_ONCE and size <= MAX_INLINE_BYTES:
            return translations(contents, units, hypotheses)
        return await asyncio.to_thread(translations, contents, units, hypotheses)

    async def _read(
        self, contents: Sequence[str], options: TextOptions, deadline: float | None
    ) -> list[Unit]:
        """All units; long texts are read off the event loop, bit by bit to keep others going."""
        if sum(map(len, contents)) <= _MAX_INLINE_LENGTH:
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
        deadline: float | None,
        writer: Writer,
        max_bytes: int | None,
    ) -> list[tuple[TranslatedHypothesis, ...]]:
        """The hypotheses of the units that have ids."""
        translatable = [unit for unit in units if unit.ids]
        if any(unit.needs_attention for unit in translatable):
            options = replace(options, attention=True)
        sources = [unit.ids for unit in translatable]
        at_once = min(MAX_AT_ONCE, fitting(sources, options, max_bytes))
        remaining, found, size = iter(translatable), list[tuple[TranslatedHypothesis, ...]](), 0
        async with aclosing(decoded(self.engine, sources, options, deadline, at_once)) as windows:
            async for results in windows:
                written = await _written(writer, [*islice(remaining, len(results))], results)
                found += written
                size += sum(map(hypothesis_bytes, written))
                check_size(size, max_bytes)
        return found


async def _written(
    writer: Writer, units: Sequence[Unit], results: Sequence[Sequence[Hypothesis]]
) -> list[tuple[TranslatedHypothesis, ...]]:
    """The hypotheses of each unit as text; much of it is written off the event loop."""
    if sum(map(writer.cost, units, results)) <= _MAX_INLINE_COST:
        return list(map(writer.hypotheses, units, results))
    return await asyncio.to_thread(lambda: list(map(writer.hypotheses, units, results)))
