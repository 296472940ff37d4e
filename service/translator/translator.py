"""`Translator`: one served model, from texts to translations."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace

from service.bundle import Bundle, Manifest
from service.decoding import DecodingOptions
from service.engine import Engine
from service.text import Tokenizer
from service.translator.document import Unit
from service.translator.options import TextOptions
from service.translator.reader import Reader, take
from service.translator.results import TranslatedHypothesis, Translation
from service.translator.windows import MAX_AT_ONCE, decoded
from service.translator.writer import Writer, translations

# Code points that are read at once: about a millisecond, on the event loop if that is all.
_MAX_READ_LENGTH = 4096


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
    ) -> list[Translation]:
        """Translates each text by itself, in order. Cancelling it frees the rows at the next step.

        deadline: seconds on the monotonic clock. Raises InvalidArgument (a text that is not
        Unicode or has a sentence too long to be accepted, named by its index) before anything is
        translated, and what `Engine.submit_all` and its futures raise.
        """
        options = options or self.default_options
        text_options = text_options or TextOptions()
        units = await self._read(contents, text_options)
        writer = Writer(
            self.manifest,
            self._tokenizers,
            no_break_spaces=text_options.no_break_spaces,
            attention=options.attention,
        )
        hypotheses = await self._decode(units, options, deadline, writer)
        if len(units) <= MAX_AT_ONCE:
            return translations(contents, units, hypotheses)
        return await asyncio.to_thread(translations, contents, units, hypotheses)

    async def _read(self, contents: Sequence[str], options: TextOptions) -> list[Unit]:
        """All units; long texts are read off the event loop, bit by bit to keep others going."""
        units = self._reader.units(contents, options)
        if sum(map(len, contents)) <= _MAX_READ_LENGTH:
            return list(units)
        read = list[Unit]()
        while some := await asyncio.to_thread(take, units, _MAX_READ_LENGTH):
            read += some
        return read

    async def _decode(
        self,
        units: Sequence[Unit],
        options: DecodingOptions,
        deadline: float | None,
        writer: Writer,
    ) -> list[tuple[TranslatedHypothesis, ...]]:
        """The hypotheses of the units that have ids."""
        translatable = [unit for unit in units if unit.ids]
        if any(unit.needs_attention for unit in translatable):
            options = replace(options, attention=True)
        sources = [unit.ids for unit in translatable]
        remaining, found = iter(translatable), list[tuple[TranslatedHypothesis, ...]]()
        async with aclosing(decoded(self.engine, sources, options, deadline)) as windows:
            async for results in windows:
                found += [writer.hypotheses(next(remaining), result) for result in results]
        return found
