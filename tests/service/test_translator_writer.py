"""What was decoded, as text: which of the hypotheses are worth returning."""

import string
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from service.bundle import Bundle, read_bundle
from service.decoding import FinishReason, Hypothesis
from service.text import Tokenizer
from service.text.protect import FOUND_KINDS, Kind, Protection, protect
from service.text.protect.stand_ins import NAMES, NUMBERS
from service.text.rewriting import Span
from service.translator import TextOptions, Translation
from service.translator.document import Unit
from service.translator.reader import Reader
from service.translator.writer import Writer, translations
from tests.corpus import ROOT

UNKNOWN = [
    "日本", "שלום", "ẞ", "Zażółć", "🙂", "👩\u200d👩\u200d👧", "👍🏽", "❤\ufe0f", "🇫🇷", "\ufe0f",
    "\u0301", "🏽",
]  # fmt: skip
GONE = ["\0", "\u200b", "\u200d", "\u2060"]
WORDS = ["A man", "in a", "blue", "shirt", "women", "lady's", "street", "Two", ", ", ". "]
PARTS = ["{name}", "%s", "7:45", "$3.59", "me@a.org", "寿司", "<b>", "</b>", "<br/>", "&#x1F9D9;"]
TERMS = {"shirt": "chemise", "寿司": "sushi", "street": "rue"}


def hypothesis(ids: list[int], attention: np.ndarray | None = None) -> Hypothesis:
    scores = np.full(len(ids) + 1, -0.5, np.float32)
    return Hypothesis(
        ids=tuple(ids),
        log_prob=float(scores.sum()),
        score=-0.5,
        finish_reason=FinishReason.END_OF_SENTENCE,
        token_log_probs=scores,
        attention=attention,
    )


def tokenizers(bundle: Bundle) -> tuple[Tokenizer, Tokenizer]:
    source, target = bundle.tokenizer_bytes("source"), bundle.tokenizer_bytes("target")
    return Tokenizer.from_bytes(source), Tokenizer.from_bytes(target)


@pytest.mark.parametrize(
    ("found", "returned"),
    [
        (["", "Un homme.", "L'homme."], ["Un homme.", "L'homme."]),
        (["Un homme.", ""], ["Un homme."]),
        (["", ""], ["", ""]),
        ([""], [""]),
    ],
)
def test_an_empty_translation_is_returned_only_if_there_is_no_other(
    found: list[str], returned: list[str], bundle: Bundle
) -> None:
    source, target = tokenizers(bundle)
    [unit] = Reader(bundle.manifest, source).units(["A man."], TextOptions())
    writer = Writer(bundle.manifest, (source, target), no_break_spaces=False, attention=False)
    written = writer.hypotheses(unit, [hypothesis(target.encode(text)) for text in found])
    assert [each.text for each in written] == returned


@st.composite
def mixes(draw: st.DrawFn) -> tuple[str, list[Span]]:
    """A text of words, parts and unknown characters in any neighbourhood, and protected spans."""
    pieces = st.sampled_from(WORDS) | st.sampled_from(UNKNOWN) | st.sampled_from(PARTS)
    spaces = st.sampled_from(["", " ", " ", *GONE])
    pairs = draw(st.lists(st.tuples(pieces, spaces), min_size=1, max_size=9))
    text = "A man " + "".join(piece + space for piece, space in pairs) + " in a blue street"
    starts = draw(st.sets(st.integers(0, len(text) - 3), max_size=2))
    text = text.upper() if draw(st.booleans()) else text
    return text, [(start, start + draw(st.integers(1, 3))) for start in sorted(starts)]


def shuffled(bundle: Bundle, text: str, options: TextOptions, seed: int) -> Translation:
    """A translation that copies, loses, doubles and moves words, and looks anywhere."""
    draw, (source, target) = np.random.default_rng(seed), tokenizers(bundle)
    writer = Writer(bundle.manifest, (source, target), no_break_spaces=False, attention=True)

    def decoded(unit: Unit) -> Hypothesis:
        words = unit.read_text.split()
        ids = target.encode(" ".join(draw.choice(words, len(words), seed % 3 > 0)))
        size = len(ids), len(source.encode_tokens(unit.read_text)) + 1
        return hypothesis(ids, draw.random(size, np.float32) ** 4)

    units = list(Reader(bundle.manifest, source).units([text], options))
    written = [writer.hypotheses(unit, [decoded(unit)]) for unit in units if unit.ids]
    return translations([text], units, written)[0]


@pytest.fixture(scope="module")
def small() -> Bundle:
    return read_bundle(ROOT / "tests" / "data" / "bundle-v2")


@pytest.mark.parametrize("html", [False, True])
@settings(max_examples=150, deadline=None, derandomize=True)
@given(mix=mixes(), seed=st.integers(0, 99))
def test_of_what_is_unknown_or_protected_nothing_is_lost_or_doubled_or_overlaps(
    html: bool, mix: tuple[str, list[Span]], seed: int, small: Bundle
) -> None:
    text, spans = mix
    protection = Protection(FOUND_KINDS, html=html, glossary=TERMS)
    options = TextOptions(protection=protection, protected_spans={0: spans} if spans else {})
    translation = shuffled(small, text, options, seed)
    assume(not translation.passed_through)
    check_kept(text, translation)
    kept = [part.source for part in translation.kept]
    masked = protect(text, protection, spans)
    parts = [(part.start, part.end) for part in masked.parts if part.kind is not Kind.TERM]
    for start, end in [*parts, *((tag.start, tag.end) for tag in masked.tags)]:
        assert any(first <= start and end <= last for first, last in kept)
    terms = [part.source for part in translation.kept if part.kind is Kind.TERM]
    gone = "".join(text[start:end] for start, end in terms)
    for sign in {"{name}", "{NAME}", *"".join(UNKNOWN)} - {*GONE, *string.ascii_letters}:
        assert translation.text.count(sign) == text.count(sign) - gone.count(sign)
    assert not [name for name in (*NAMES, *NUMBERS) if name.upper() in translation.text.upper()]


def check_kept(text: str, translation: Translation) -> None:
    """Parts are in order, apart, and the same in both texts."""
    position = 0
    for part in translation.kept:
        expected = text[slice(*part.source)]
        if part.kind is Kind.TERM:
            expected = TERMS[expected]
        assert position <= part.target[0] < part.target[1]
        assert translation.text[slice(*part.target)] == expected
        position = part.target[1]
    sources = sorted(part.source for part in translation.kept)
    assert all(left[1] <= right[0] for left, right in pairwise(sources))
