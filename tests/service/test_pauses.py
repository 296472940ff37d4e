"""What stops every thread of a server: collections have little to find and little to look at."""

import gc
import subprocess
import sys
from collections.abc import Iterator

import pytest

from service.batching import Answer
from service.bundle import Bundle
from service.decoding import DecodingOptions
from service.engine import load_engine
from service.translator import Translator

MAX_ROWS = 8
CODE = """
import gc
import service.server.process
before = len(gc.get_objects())
from service.server.pauses import shorten_pauses
shorten_pauses()
print(before, len(gc.get_objects()))
"""


@pytest.fixture
def translator(bundle: Bundle) -> Iterator[Translator]:
    engine = load_engine(bundle, precision="fp32", workers=1, max_rows=MAX_ROWS)
    yield Translator(bundle, engine)
    engine.close()


def test_a_collection_looks_at_nothing_that_was_there_when_the_server_began_to_serve() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert after < before / 100


def test_sentences_that_were_answered_are_gone_without_a_collection(
    translator: Translator,
) -> None:
    gc.collect()
    gc.disable()
    try:
        translator.translate(["Two young women."] * 300, DecodingOptions(max_length=2))
        # The worker remembers whom it admitted last.
        left = [each for each in gc.get_objects() if type(each) is Answer]
        assert len(left) <= MAX_ROWS
    finally:
        gc.enable()
