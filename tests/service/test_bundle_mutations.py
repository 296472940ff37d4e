"""Bundles of every version are read for ever; spoiled ones are refused by name, whatever it is.

A file that was changed on its way is told from its hash, and never opened. One that was signed
after it was changed is read as what it says it is, and is refused by whoever reads it.
"""

import io
import os
import random
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from service.bundle import Bundle, read_bundle, write_bundle
from service.bundle.lexicon import MAX_LEXICON_BYTES
from service.bundle.manifest import FORMAT_VERSION, OLDEST_FORMAT_VERSION
from service.decoding import DecodingOptions, decode
from service.errors import BundleError, ConfigError
from service.session import Graphs, OnnxModel, prove
from service.text import Tokenizer
from tests.corpus import ROOT

VERSIONS = range(OLDEST_FORMAT_VERSION, FORMAT_VERSION + 1)
KEPT = ROOT / "tests" / "data"
FIRST = KEPT / "bundle-v1"
TRANSLATIONS = [(115,), (269, 266, 266, 266, *(8 * [284]))]  # as the release wrote that wrote it
SEEDS = range(40)

Mutation = Callable[[random.Random, bytes], bytes]


def flip_bits(chance: random.Random, data: bytes) -> bytes:
    mutated = bytearray(data)
    for _ in range(chance.choice((1, 1, 4, 32))):
        mutated[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(mutated)


def cut_off(chance: random.Random, data: bytes) -> bytes:
    return data[: chance.randrange(1, len(data))]


def put_in(chance: random.Random, data: bytes) -> bytes:
    place = chance.randrange(len(data))
    return data[:place] + chance.randbytes(chance.randrange(1, 64)) + data[place:]


def repeat_a_part(chance: random.Random, data: bytes) -> bytes:
    origin, place = chance.randrange(len(data) - 64), chance.randrange(len(data) - 64)
    return data[:place] + data[origin : origin + 64] + data[place + 64 :]


MUTATIONS: tuple[Mutation, ...] = (flip_bits, cut_off, put_in, repeat_a_part)


@pytest.fixture(scope="module")
def whole() -> Bundle:
    return read_bundle(FIRST)


@pytest.fixture(scope="module")
def contents(whole: Bundle) -> dict[str, bytes]:
    return {name: (FIRST / name).read_bytes() for name in whole.manifest.files}


def read_everything(bundle: Bundle) -> None:
    """All that a server reads before it serves."""
    bundle.lexicon()
    for side in ("source", "target"):
        Tokenizer.from_bytes(bundle.tokenizer_bytes(side), bundle.manifest.source_prefix)
    prove(Graphs.load(bundle, bundle.manifest.precisions[0]))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_bundle_of_every_version_is_kept_and_read(version: int) -> None:
    bundle = read_bundle(KEPT / f"bundle-v{version}")
    assert bundle.manifest.format_version == version
    read_everything(bundle)


def test_the_first_version_translates_as_it_did(whole: Bundle) -> None:
    tokenizer = Tokenizer.from_bytes(whole.tokenizer_bytes("source"))
    model = OnnxModel(Graphs.load(whole, "int8"), 4)
    sources = [[*tokenizer.encode(text), model.eos_id] for text in ("A man", "the dog, lazy")]
    found = decode(model, sources, DecodingOptions(max_length=12))
    assert [best.ids for best, *_ in found] == TRANSLATIONS


def test_what_is_written_again_is_of_the_newest_version(
    whole: Bundle, contents: dict[str, bytes], tmp_path: Path
) -> None:
    again = write_bundle(tmp_path / "again", whole.manifest, contents)
    assert again.manifest == replace(whole.manifest, format_version=FORMAT_VERSION)


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_file_that_was_changed_on_its_way_is_refused_by_name(
    mutation: Mutation, whole: Bundle, contents: dict[str, bytes], tmp_path: Path
) -> None:
    copy = write_bundle(tmp_path / "copy", whole.manifest, contents).directory
    for seed in SEEDS:
        chance = random.Random(seed)
        name = chance.choice(sorted(contents))
        mutated = mutation(chance, contents[name])
        (copy / name).write_bytes(mutated)
        if mutated != contents[name]:
            with pytest.raises(BundleError) as refusal:
                read_bundle(copy)
            [fault] = refusal.value.faults
            assert fault.startswith(name)
        (copy / name).write_bytes(contents[name])
    assert read_bundle(copy).manifest.files == whole.manifest.files


@pytest.mark.parametrize(
    "name", ["source.model", "shortlist.npz", "int8/encoder.onnx", "int8/step.onnx"]
)
def test_a_file_that_was_signed_after_it_was_changed_is_read_or_refused(
    name: str, whole: Bundle, contents: dict[str, bytes], tmp_path: Path
) -> None:
    refused = 0
    for seed in SEEDS[:: 3 if name.endswith(".onnx") else 1]:
        chance = random.Random(seed)
        mutated = chance.choice(MUTATIONS)(chance, contents[name])
        signed = write_bundle(tmp_path / str(seed), whole.manifest, contents | {name: mutated})
        try:
            read_everything(signed)
        except (BundleError, ConfigError) as error:
            refused += 1
            assert error.faults
    assert refused


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_manifest_that_was_changed_is_read_or_refused(
    mutation: Mutation, whole: Bundle, contents: dict[str, bytes], tmp_path: Path
) -> None:
    path = write_bundle(tmp_path / "copy", whole.manifest, contents).directory / "bundle.json"
    original = path.read_bytes()
    for seed in SEEDS:
        path.write_bytes(mutation(random.Random(seed), original))
        try:
            read_bundle(path.parent)
        except BundleError as error:
            assert error.faults


def test_a_lexicon_that_would_fill_the_memory_is_refused(
    whole: Bundle, contents: dict[str, bytes], tmp_path: Path
) -> None:
    bomb = packed_zeros(MAX_LEXICON_BYTES + 1)
    assert len(bomb) < 2**21
    swollen = write_bundle(tmp_path / "bomb", whole.manifest, contents | {"shortlist.npz": bomb})
    with pytest.raises(BundleError, match="bytes unpacked, at most"):
        swollen.lexicon()


def packed_zeros(count: int) -> bytes:
    """A zip archive of so many zeros, a piece at a time."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("words.npy", "w", force_zip64=True) as member:
            for start in range(0, count, 2**20):
                member.write(bytes(min(2**20, count - start)))
    return file.getvalue()


@pytest.mark.parametrize("name", ["bundle.json", "source.model", "int8/step.onnx"])
def test_a_file_without_an_end_is_not_read(
    name: str, whole: Bundle, contents: dict[str, bytes], tmp_path: Path
) -> None:
    """A hole of a terabyte: its size is told without reading it."""
    copy = write_bundle(tmp_path / "copy", whole.manifest, contents).directory
    os.truncate(copy / name, 2**40)
    with pytest.raises(BundleError) as refusal:
        read_bundle(copy)
    assert any(fault.startswith(name) for fault in refusal.value.faults)
