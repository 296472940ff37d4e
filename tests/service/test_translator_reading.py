"""Reading long texts: off the event loop, and not to the end if nobody waits for it."""

import threading
import time
from collections.abc import Iterator, Sequence

import pytest

from service.bundle import Bundle
from service.decoding import DecodingOptions, Hypothesis
from service.engine import load_engine
from service.errors import Cancelled, DeadlineExceeded
from service.text import Tokenizer
from service.text.protect import Kind, Protection
from service.translator import TextOptions, Translator
from service.translator.document import Unit
from service.translator.patience import Patience
from service.translator.reader import Reader
from service.translator.results import TranslatedHypothesis
from service.translator.writer import Writer

TAGS = TextOptions(protection=Protection(frozenset([Kind.TAG])))
LONG = "<b>a</b> man. " * 1000


@pytest.fixture(scope="module")
def translator(bundle: Bundle) -> Iterator[Translator]:
    engine = load_engine(bundle, precision="fp32", workers=1, max_rows=8)
    yield Translator(bundle, engine)
    engine.close()


@pytest.fixture(scope="module")
def reader(bundle: Bundle) -> Reader:
    tokenizer = Tokenizer.from_bytes(bundle.tokenizer_bytes("source"))
    return Reader(bundle.manifest, tokenizer)


def test_patience_lasts_until_the_deadline() -> None:
    Patience(None).check()
    Patience(time.monotonic() + 3600).check()
    with pytest.raises(DeadlineExceeded):
        Patience(time.monotonic()).check()


@pytest.mark.parametrize("text", [LONG, "<b>a</b> man. ", "A man."])
def test_nothing_is_read_for_a_caller_who_has_left(reader: Reader, text: str) -> None:
    patience = Patience(None)
    units = reader.units([text], TAGS, patience.check)
    patience.end()
    with pytest.raises(Cancelled):
        next(units)


def test_what_is_read_with_a_check_is_what_is_read_without(reader: Reader) -> None:
    def texts(units: Iterator[Unit]) -> list[str]:
        return [unit.text for unit in units]

    patience = Patience(time.monotonic() + 3600)
    checked = texts(reader.units([LONG, "A man."], TAGS, patience.check))
    assert checked == texts(reader.units([LONG, "A man."], TAGS))


def test_hiding_what_is_protected_ends_with_the_deadline(translator: Translator) -> None:
    with pytest.raises(DeadlineExceeded, match="while the texts were read"):
        translator.translate([LONG], deadline=time.monotonic(), text_options=TAGS)


def test_a_sentence_with_many_tags_is_written_off_the_event_loop(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_loop, plain = list[bool](), Writer.hypotheses

    def recorded(
        self: Writer, unit: Unit, results: Sequence[Hypothesis]
    ) -> tuple[TranslatedHypothesis, ...]:
        on_loop.append(threading.current_thread() is threading.main_thread())
        return plain(self, unit, results)

    monkeypatch.setattr(Writer, "hypotheses", recorded)
    for count in (1, 500):
        text = f"A {'<b>' * count}man{'</b>' * count} in a shirt."
        options = DecodingOptions(max_length=8)
        (translation,) = translator.translate([text], options, text_options=TAGS)
        assert translation.text.count("<b>") == translation.text.count("</b>") == count
    assert on_loop == [True, False]
