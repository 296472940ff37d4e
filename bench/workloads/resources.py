"""What a server costs while it starts, waits and is full; and whether it grows."""

import csv
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from bench.processes import LoadProcess, ServerProcess, our_server
from bench.settings import Settings
from bench.table import Row
from service.bundle import Bundle, read_bundle
from service.client import Client
from service.engine import usable_cores
from service.pb import translation_pb2 as pb
from service.text import Tokenizer

OURS = "this server"
_ROWS_IN_FLIGHT, _TOKENS = 256, 64
_STARTS = 5
_SOAK_CALLS_PER_SECOND = 25.0
_SAMPLE_SECONDS = 10.0
_WARM_SECONDS = 60.0


def resources(settings: Settings) -> Iterator[Row]:
    """Cold start of one bundle and of all, idle processor time, memory full of long sentences."""
    bundle = settings.bundle("transformer")
    bundles = [read_bundle(path.parent) for path in sorted(settings.models.glob("*/bundle.json"))]
    starts = 1 if settings.is_quick else _STARTS
    with tempfile.TemporaryDirectory() as scratch:
        shutil.copytree(bundle.directory, Path(scratch, bundle.manifest.name))
        yield _cold_start(Path(scratch), [bundle], starts)
    yield _cold_start(settings.models, bundles, starts)
    workers = usable_cores() * len(bundles)
    with our_server(settings.models, f"--max-rows={-(-_ROWS_IN_FLIGHT // workers)}") as server:
        yield _idle(server, settings.seconds)
        yield _full(server, bundles, settings)


def _cold_start(models: Path, bundles: Sequence[Bundle], starts: int) -> Row:
    """From exec to SERVING, the bundles' files being in the page cache."""
    seconds = []
    for _ in range(starts):
        with our_server(models) as server:
            seconds.append(server.start_seconds)
    size = sum(file.size for bundle in bundles for file in bundle.manifest.files.values())
    case = f"cold start, {len(bundles)} bundles, {size / 2**20:.0f} MiB"
    return Row("resources", case, OURS, {"s": median(seconds)})


def _idle(server: ServerProcess, seconds: float) -> Row:
    before = server.cpu_seconds()
    time.sleep(seconds)
    percent = 100 * (server.cpu_seconds() - before) / seconds
    return Row("resources", "idle", OURS, {"CPU %": percent, "MiB": server.memory_mib()[0]})


def _full(server: ServerProcess, bundles: Sequence[Bundle], settings: Settings) -> Row:
    """Every row of every worker in use by a sentence as long as `_TOKENS`, several times over."""
    per_model = _ROWS_IN_FLIGHT // len(bundles)
    requests = [_long_request(bundle, per_model, settings) for bundle in bundles]
    with Client(server.address) as client, ThreadPoolExecutor(len(requests)) as pool:
        for _ in range(settings.rounds):
            list(pool.map(client.translate, requests))
    now, highest = server.memory_mib()
    case = f"{_ROWS_IN_FLIGHT} rows of {_TOKENS} tokens, {len(bundles)} bundles"
    return Row("resources", case, OURS, {"MiB": now, "highest MiB": highest})


def _long_request(bundle: Bundle, count: int, settings: Settings) -> pb.TranslateRequest:
    tokenizer = Tokenizer.from_bytes(bundle.tokenizer_bytes("source"))
    words = " ".join(settings.corpus.sources).replace(".", ",").replace("?", ",").split()
    size = limit = min(_TOKENS, bundle.manifest.limits.max_source_tokens)
    while len(tokenizer.encode(" ".join(words[:size]))) >= limit:
        size -= 1
    return pb.TranslateRequest(
        contents=[" ".join(words[:size])] * count,
        model=bundle.manifest.name,
        options=pb.DecodingOptions(max_length=_TOKENS),
    )


def soak(settings: Settings) -> Iterator[Row]:
    """Memory over minutes of mixed load on all bundles, also written as a CSV file."""
    models = [path.parent.name for path in sorted(settings.models.glob("*/bundle.json"))]
    seconds = 60 * settings.minutes
    path = settings.results / f"{settings.name}-soak.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as scratch,
        our_server(settings.models) as server,
        ThreadPoolExecutor(1) as pool,
        path.open("w", newline="") as file,
    ):
        load = LoadProcess(settings.corpus.sources, Path(scratch), seconds)
        flags = ["--mixed", f"--rate={_SOAK_CALLS_PER_SECOND}", *(f"--model={m}" for m in models)]
        report = pool.submit(load.run, server.address, flags)
        writer = csv.writer(file)
        writer.writerow(["seconds", "resident_mib", "cpu_seconds", "sentences"])
        samples = list[tuple[float, float]]()
        started = time.monotonic()
        while not report.done():
            elapsed, memory = time.monotonic() - started, server.memory_mib()[0]
            samples.append((elapsed, memory))
            sentences = server.counters()["nmt_finished_sentences_total"]
            writer.writerow(
                [f"{elapsed:.1f}", f"{memory:.1f}", server.cpu_seconds(), f"{sentences:.0f}"]
            )
            file.flush()
            time.sleep(min(_SAMPLE_SECONDS, seconds / 10))
    yield _soak_row(samples, report.result().columns(), settings.minutes)


def _soak_row(
    samples: list[tuple[float, float]], columns: dict[str, float | str], minutes: float
) -> Row:
    warm = [memory for elapsed, memory in samples if elapsed >= _WARM_SECONDS] or [samples[-1][1]]
    values: dict[str, float | str] = {
        "MiB after 1 min": warm[0],
        "MiB at the end": warm[-1],
        "highest MiB": max(warm),
        "growth": f"{warm[-1] / warm[0] - 1:+.1%}",
    }
    return Row("soak", f"{minutes:g} min mixed", OURS, values | columns)
