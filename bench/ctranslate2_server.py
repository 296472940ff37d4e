"""A gRPC server around ctranslate2, as fast as we can make one: the peer under load.

    python -m bench.ctranslate2_server MODEL TOKENIZER

The same contract, the same event loop and tokenizer as ours, without a queue's bounds, deadlines,
attention, layout or per-request metrics: that costs it nothing. Dynamic batching: whatever waits
when a worker is free is translated together, shared between the workers that are free.
"""

import argparse
import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import ctranslate2
import grpc
from prometheus_client import CollectorRegistry, Counter, start_http_server
from sentencepiece import SentencePieceProcessor

from bench.vocabulary_map import VOCABULARY_MAP
from service.decoding import DecodingOptions
from service.engine import usable_cores
from service.pb import translation_pb2 as pb
from service.pb.translation_pb2_grpc import (
    TranslationServiceServicer,
    add_TranslationServiceServicer_to_server,
)

Pieces: TypeAlias = list[str]
Translate: TypeAlias = Callable[[list[Pieces]], list[Pieces]]

BATCHES, SENTENCES = "ctranslate2_batches_total", "ctranslate2_batch_sentences_total"
"""Metrics: their ratio is the mean batch."""
_EOS = "</s>"


@dataclass(slots=True)
class _Call:
    """Sentences that were submitted together and are answered together."""

    sources: Sequence[Pieces]
    results: list[Pieces]
    num_missing: int
    done: "asyncio.Future[None]"


class DynamicBatcher:
    """Gathers sentences of all calls into batches for `workers` threads; `translate` is blocking.

    A batch is what waits when a worker is free, at most `max_batch` sentences; it waits
    `max_wait_seconds` longer for company if it isn't full. Made and used on an event loop.
    """

    def __init__(
        self, translate: Translate, *, workers: int, max_batch: int, max_wait_seconds: float
    ) -> None:
        self._translate = translate
        self._max_batch = max_batch
        self._max_wait = max_wait_seconds
        self._waiting: deque[tuple[_Call, int]] = deque()
        self._arrived = asyncio.Event()
        self._num_idle = workers
        self._pool = ThreadPoolExecutor(workers)
        self._workers = [asyncio.create_task(self._work()) for _ in range(workers)]

    async def submit(self, sources: Sequence[Pieces]) -> list[Pieces]:
        """The translations, once all of them are there."""
        if not sources:
            return []
        done = asyncio.get_running_loop().create_future()
        call = _Call(sources, [[]] * len(sources), len(sources), done)
        self._waiting.extend((call, index) for index in range(len(sources)))
        self._arrived.set()
        await done
        return call.results

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._arrived.wait()
            if self._max_wait and len(self._waiting) < self._max_batch:
                await asyncio.sleep(self._max_wait)
            batch = self._take()
            if batch:
                self._num_idle -= 1
                sources = [call.sources[index] for call, index in batch]
                results = await loop.run_in_executor(self._pool, self._attempt, sources)
                self._num_idle += 1
                _answer(batch, results)

    def _take(self) -> list[tuple[_Call, int]]:
        """This worker's share of what waits: no idle one stands by while another has all."""
        share = -(-len(self._waiting) // self._num_idle)
        batch = [self._waiting.popleft() for _ in range(min(share, self._max_batch))]
        if not self._waiting:
            self._arrived.clear()
        return batch

    def _attempt(self, sources: list[Pieces]) -> list[Pieces] | Exception:
        try:
            return self._translate(sources)
        except Exception as error:  # the worker must live on; the callers get it
            return error


def _answer(batch: Sequence[tuple[_Call, int]], results: list[Pieces] | Exception) -> None:
    for place, (call, index) in enumerate(batch):
        if call.done.done():  # cancelled, or failed with another batch
            continue
        if isinstance(results, Exception):
            call.done.set_exception(results)
            continue
        call.results[index] = results[place]
        call.num_missing -= 1
        if not call.num_missing:
            call.done.set_result(None)


class _Servicer(TranslationServiceServicer):
    def __init__(self, processor: Any, batcher: DynamicBatcher) -> None:
        self._processor = processor
        self._batcher = batcher

    async def Translate(
        self, request: pb.TranslateRequest, context: "grpc.aio.ServicerContext[Any, Any]"
    ) -> pb.TranslateResponse:
        encode, decode = self._processor.encode, self._processor.decode
        sources = [[*encode(text, out_type=str), _EOS] for text in request.contents if text]
        targets = iter(await self._batcher.submit(sources))
        texts = (decode(next(targets)) if text else "" for text in request.contents)
        return pb.TranslateResponse(
            translations=[pb.Translation(translated_text=text) for text in texts]
        )


def make_translate(
    translator: Any, beam_size: int, registry: CollectorRegistry, *, use_map: bool = False
) -> Translate:
    """Translates a batch within the length limits that our service has by default.

    use_map: choose from the lists that lie beside the model.
    """
    options = DecodingOptions(beam_size=beam_size)
    batches = Counter(BATCHES, "Batches translated.", registry=registry)
    sentences = Counter(SENTENCES, "Sentences in them.", registry=registry)

    def translate(sources: list[Pieces]) -> list[Pieces]:
        batches.inc()
        sentences.inc(len(sources))
        results = translator.translate_batch(
            sources,
            beam_size=beam_size,
            max_input_length=0,
            max_decoding_length=options.length_limit(max(map(len, sources))),
            use_vmap=use_map,
        )
        return [result.hypotheses[0] for result in results]

    return translate


async def serve(options: argparse.Namespace) -> None:
    """Serves until it is killed; says where once it can answer."""
    translator = ctranslate2.Translator(
        str(options.model),
        compute_type=options.compute_type,
        inter_threads=usable_cores(),
        intra_threads=1,
    )
    registry = CollectorRegistry()
    batcher = DynamicBatcher(
        make_translate(
            translator,
            options.beam_size,
            registry,
            use_map=(options.model / VOCABULARY_MAP).exists(),
        ),
        workers=usable_cores(),
        max_batch=options.max_batch,
        max_wait_seconds=options.max_wait_ms / 1e3,
    )
    await batcher.submit([[_EOS]] * options.max_batch)  # warms up
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0)])
    servicer = _Servicer(SentencePieceProcessor(model_file=str(options.tokenizer)), batcher)
    add_TranslationServiceServicer_to_server(servicer, server)  # type: ignore[no-untyped-call]
    port = server.add_insecure_port("localhost:0")
    http, _ = start_http_server(0, "localhost", registry)
    await server.start()
    metrics = f"http://localhost:{http.server_port}/metrics"
    print(f"serving on localhost:{port}, metrics on {metrics}", flush=True)
    await server.wait_for_termination()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.ctranslate2_server")
    parser.add_argument("model", type=Path, help="directory of a converted model")
    parser.add_argument("tokenizer", type=Path, help="SentencePiece model")
    parser.add_argument("--compute-type", default="int8")
    parser.add_argument("--beam-size", type=int, default=1)
    parser.add_argument("--max-batch", type=int, default=64, help="sentences translated together")
    parser.add_argument("--max-wait-ms", type=float, default=0.0, help="that a batch is held open")
    asyncio.run(serve(parser.parse_args()))


if __name__ == "__main__":
    main()
