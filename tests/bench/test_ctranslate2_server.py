"""The peer's server: batches of many callers' sentences, each answered with its own."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from bench.ctranslate2_server import BATCHES, SENTENCES, DynamicBatcher, Pieces
from bench.processes import peer_server
from bench.settings import comparable
from bench.systems import Ctranslate2System, Peer, translate
from service.bundle import read_bundle
from service.client import Client
from service.decoding import DecodingOptions
from service.pb import translation_pb2 as pb
from service.text import Tokenizer

T = TypeVar("T")


def upper(sources: list[Pieces]) -> list[Pieces]:
    return [[piece.upper() for piece in source] for source in sources]


def run(work: Callable[[DynamicBatcher], Awaitable[T]], translate: object = upper) -> T:
    async def main() -> T:
        batcher = DynamicBatcher(
            translate,  # type: ignore[arg-type]
            workers=2,
            max_batch=4,
            max_wait_seconds=0.001,
        )
        return await work(batcher)

    return asyncio.run(main())


def test_every_caller_gets_the_translations_of_its_own_sentences_in_their_order() -> None:
    calls = [[[f"{caller}a"], [f"{caller}b", "c"]] for caller in range(20)]

    async def work(batcher: DynamicBatcher) -> list[list[Pieces]]:
        return await asyncio.gather(*(batcher.submit(call) for call in calls))

    assert run(work) == [upper(call) for call in calls]


def test_no_batch_is_larger_than_allowed() -> None:
    sizes = []

    def count(sources: list[Pieces]) -> list[Pieces]:
        sizes.append(len(sources))
        return sources

    run(lambda batcher: batcher.submit([["a"]] * 30), count)
    assert sum(sizes) == 30 and max(sizes) <= 4


def test_a_batch_that_fails_fails_its_callers_and_nobody_else() -> None:
    def fail_on_x(sources: list[Pieces]) -> list[Pieces]:
        if ["x"] in sources:
            raise RuntimeError("x")
        return sources

    async def work(batcher: DynamicBatcher) -> list[Pieces]:
        with pytest.raises(RuntimeError):
            await batcher.submit([["x"]])
        return await batcher.submit([["y"]])

    assert run(work, fail_on_x) == [["y"]]


def test_the_server_says_what_ctranslate2_says(models: Path, tmp_path: Path) -> None:
    bundle = read_bundle(models / "transformer")
    peer = Peer.write(bundle, tmp_path / "peer")
    tokenizer = Tokenizer.from_bytes(bundle.tokenizer_bytes("source"))
    texts = ["A man is cleaning a window.", "", "Two young women."]
    expected = [said_by_ctranslate2(peer, tokenizer, text) if text else "" for text in texts]
    with (
        peer_server(peer.directory, bundle.directory / "source.model") as server,
        Client(server.address) as client,
    ):
        before = server.counters()
        # One by one: the limit of a batch is that of its longest sentence.
        responses = [client.translate(pb.TranslateRequest(contents=[text])) for text in texts]
        after = server.counters()
    assert [response.translations[0].translated_text for response in responses] == expected
    assert after[SENTENCES] - before[SENTENCES] == after[BATCHES] - before[BATCHES] == 2


def said_by_ctranslate2(peer: Peer, tokenizer: Tokenizer, text: str) -> str:
    source = [*tokenizer.encode(text), tokenizer.eos_id]
    options = comparable(1, max_length=DecodingOptions().length_limit(len(source)))
    [target] = translate(Ctranslate2System(peer.best(), peer.pieces, options), [source])
    return tokenizer.decode(target)
