"""What the text around the model costs: plain sentences, and long texts with much to protect.

Plain sentences are translated in turns by the translator, which looks for all that may stand in a
text, and by the engine with the tokenizer alone. Both have one event loop, the same windows and
room that is kept for them, so that the difference is the text work. It is a few per cent, less than
the noise of a machine with other work: judge by CPU time, of all threads of the process.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import chain
from statistics import median

from bench.settings import Settings
from bench.systems import engine_of
from bench.table import Row
from bench.timing import Ratio
from service.batching import Request
from service.bundle import Bundle
from service.decoding import DecodingOptions, Hypothesis
from service.engine import Engine
from service.text import Tokenizer
from service.text.protect import FOUND_KINDS, Protection, protect
from service.translator import TextOptions, Translator
from service.translator.reader import Reader
from service.translator.windows import MAX_AT_ONCE, decode
from service.translator.writer import Writer, translations

DIRECT, TRANSLATOR = "tokenizer and engine", "translator"
_MAX_PLAIN_LENGTH = 200
_LONG = 1 << 20
_LONG_TEXTS = {
    "tags": "<b>a</b> ",
    "addresses": "me@example.org ",
    "placeholders": "{name} ",
    "terms": "the engine ",
    "words alone": "nothing to protect ",
}
_GLOSSARY = {f"term {number}": f"terme {number}" for number in range(999)} | {"engine": "moteur"}
_Way = Callable[[Sequence[str]], Awaitable[list[str]]]
_Seconds = tuple[float, float]
"""On the wall, and of the CPU."""


def text(settings: Settings) -> Iterator[Row]:
    """Plain sentences in one request and in a request each; then the time of long texts."""
    bundle = settings.bundle("transformer")
    sentences = _plain(settings.corpus.sources)
    with closing(engine_of(bundle)) as engine:
        plain = _Plain(bundle, engine)
        yield from _compared(plain, "one request", [sentences], settings.rounds)
        each = [[sentence] for sentence in sentences]
        yield from _compared(plain, "a request each", each, settings.rounds)
        yield from _text_work(plain, sentences, settings.rounds)
    for name, unit in _LONG_TEXTS.items():
        yield _long(name, unit, _LONG >> 4 if settings.is_quick else _LONG)


def _plain(sources: Sequence[str]) -> list[str]:
    """Sentences by themselves, no more than are decoded at once."""
    plain = [source for source in sources if len(source) <= _MAX_PLAIN_LENGTH]
    return plain[:MAX_AT_ONCE]


class _Plain:
    """Two ways of a text through one engine."""

    def __init__(self, bundle: Bundle, engine: Engine) -> None:
        self._manifest, self._engine = bundle.manifest, engine
        self._translator = Translator(bundle, engine)
        limit = min(DecodingOptions().max_length, bundle.manifest.limits.max_target_tokens)
        self._greedy = DecodingOptions(max_length=limit)
        self._source = Tokenizer.from_bytes(bundle.tokenizer_bytes("source"))
        self._target = Tokenizer.from_bytes(bundle.tokenizer_bytes("target"))

    async def translated(self, texts: Sequence[str]) -> list[str]:
        found = await self._translator.translate_async(texts, self._greedy)
        return [translation.text for translation in found]

    async def direct(self, texts: Sequence[str]) -> list[str]:
        found = await self.decoded(texts)
        return [self._target.decode(hypotheses[0].ids) for hypotheses in found]

    async def decoded(self, texts: Sequence[str]) -> list[list[Hypothesis]]:
        eos = self._manifest.special_ids.eos
        sources = [[*self._source.encode(text), eos] for text in texts]
        request = Request(len(sources), sum(map(len, sources)))
        with self._engine.room_for(request):
            found = list[list[Hypothesis]]()

            async def take(window: list[list[Hypothesis]]) -> None:
                found.extend(window)

            await decode(self._engine, sources, self._greedy, request, take)
            return found

    def work(self, sentences: Sequence[str]) -> dict[str, Callable[[], object]]:
        """What is done outside the engine: by the tokenizer alone, and by the translator."""
        results = asyncio.run(self.decoded(sentences))
        reader, options = Reader(self._manifest, self._source), TextOptions()
        tokenizers = self._source, self._target

        def direct(text: str, hypotheses: Sequence[Hypothesis]) -> None:
            self._source.encode(text)
            self._target.decode(hypotheses[0].ids)

        def translator(text: str, hypotheses: Sequence[Hypothesis]) -> None:
            units = list(reader.units([text], options))
            writer = Writer(self._manifest, tokenizers, no_break_spaces=False, attention=False)
            translations([text], units, [writer.hypotheses(unit, hypotheses) for unit in units])

        return {
            DIRECT: lambda: list(map(direct, sentences, results)),
            TRANSLATOR: lambda: list(map(translator, sentences, results)),
        }


def _text_work(plain: _Plain, sentences: Sequence[str], rounds: int) -> Iterator[Row]:
    """Each sentence by itself, on one thread."""
    work = plain.work(sentences)
    for name, seconds in _in_turns(work, rounds).items():
        microseconds = 1e6 * median(cpu for _, cpu in seconds) / len(sentences)
        yield Row("text", "outside the engine", name, {"CPU us/sentence": microseconds})


def _compared(
    plain: _Plain, case: str, requests: Sequence[Sequence[str]], rounds: int
) -> Iterator[Row]:
    ways = {DIRECT: plain.direct, TRANSLATOR: plain.translated}
    answers = {name: asyncio.run(_all(way, requests)) for name, way in ways.items()}
    runs = {name: partial(_run, way, requests) for name, way in ways.items()}
    seconds = _in_turns(runs, rounds)
    wall, cpu = ({name: [s[i] for s in seconds[name]] for name in ways} for i in (0, 1))
    for name in ways:
        count = len(answers[name])
        values: dict[str, float | str] = {
            "CPU us/sentence": 1e6 * median(cpu[name]) / count,
            "sentences/s": count / median(wall[name]),
        }
        if name == TRANSLATOR:
            same = sum(map(str.__eq__, answers[DIRECT], answers[TRANSLATOR])) / count
            values |= Ratio.of(cpu[TRANSLATOR], cpu[DIRECT]).values("x CPU of direct")
            values["x speed of direct"] = Ratio.of(wall[DIRECT], wall[TRANSLATOR]).median
            values["same"] = f"{same:.1%}"
        yield Row("text", case, name, values)


def _in_turns(
    runs: Mapping[str, Callable[[], object]], rounds: int
) -> Mapping[str, Sequence[_Seconds]]:
    """Every run in every round, each first in every other one: A B B A."""
    seconds: dict[str, list[_Seconds]] = {name: [] for name in runs}
    for number in range(rounds):
        for name in sorted(runs, reverse=number % 2 == 1):
            seconds[name].append(_timed(runs[name]))
    return seconds


def _run(way: _Way, requests: Sequence[Sequence[str]]) -> None:
    asyncio.run(_all(way, requests))


async def _all(way: _Way, requests: Sequence[Sequence[str]]) -> list[str]:
    return [*chain.from_iterable(await asyncio.gather(*map(way, requests)))]


def _timed(run: Callable[[], object]) -> _Seconds:
    wall, cpu = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - wall, time.process_time() - cpu


def _long(name: str, unit: str, length: int) -> Row:
    """Hiding what is protected in a text, and in one of half the length: twice, if linear."""
    protection = Protection(FOUND_KINDS, glossary=_GLOSSARY)
    cpu = [
        _timed(partial(protect, unit * (size // len(unit)), protection))[1]
        for size in (length, length // 2)
    ]
    values: dict[str, float | str] = {"CPU s": cpu[0], "x half the text": cpu[0] / cpu[1]}
    return Row("long texts", f"{length:,} code points", name, values)
