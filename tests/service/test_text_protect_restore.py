"""Whatever the model writes and wherever it looks: all that is protected comes out, once."""

import re
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from service.text.protect import (
    FOUND_KINDS,
    Decoded,
    Kind,
    Masked,
    Protection,
    Restored,
    extent,
    find_tags,
    protect,
    restore,
)
from service.text.rewriting import Span

EVERYTHING = Protection(FOUND_KINDS, glossary={"engine": "moteur"})
HTML = Protection(FOUND_KINDS, html=True, glossary={"engine": "moteur"})

WORDS = ["the", "cat", "saw", "engine", "Tom", "中文", "👍🏽", "e\u0301t", "&amp;", "a", "."]
PARTS = ["{name}", "%s", "https://a.org/b?c=d", "me@a.org", "$3.50", "12:30", "%(n)s"]
SPACES = ["", " ", " ", " ", "\n", "\n\n"]


@st.composite
def documents(draw: st.DrawFn, depth: int = 3) -> str:
    """Words, parts and elements in any mix; the name of each element is its own."""
    names = iter(range(1000))

    def content(depth: int) -> str:
        pieces = []
        for _ in range(draw(st.integers(0, 4))):
            kind = draw(st.sampled_from(["word", "part", "empty", "element"][: 4 if depth else 3]))
            if kind == "word":
                pieces.append(draw(st.sampled_from(WORDS)))
            elif kind == "part":
                pieces.append(draw(st.sampled_from(PARTS)))
            elif kind == "empty":
                pieces.append(f"<e{next(names)}/>")
            else:
                name = draw(st.sampled_from(["b{}", "i{}", "x:p{}"])).format(next(names))
                pieces.append(f'<{name} a=">">{content(depth - 1)}</{name}>')
            pieces.append(draw(st.sampled_from(SPACES)))
        return "".join(pieces)

    return content(depth)


@st.composite
def sentences(draw: st.DrawFn, length: int) -> list[Span]:
    """Any spans in order, side by side or apart."""
    cuts = sorted(draw(st.sets(st.integers(0, length), max_size=8)))
    pairs = list(zip(cuts, cuts[1:], strict=False))
    return pairs if draw(st.booleans()) else pairs[::2]


@st.composite
def spans(draw: st.DrawFn, length: int) -> list[Span]:
    """Tokens as a tokenizer gives them: starts and ends in order; some are empty, some overlap."""
    starts = sorted(draw(st.lists(st.integers(0, length), max_size=12)))
    lengths = draw(st.lists(st.integers(0, 4), min_size=len(starts), max_size=len(starts)))
    ends = np.maximum.accumulate([min(length, a + b) for a, b in zip(starts, lengths, strict=True)])
    return [(start, int(end)) for start, end in zip(starts, ends, strict=True)]


@st.composite
def decoded(draw: st.DrawFn, masked: Masked) -> Decoded:
    """Any text, stand-ins among it, and any weights."""
    stand_ins = sorted({part.stand_in for part in masked.parts}) or ["x"]
    piece = st.sampled_from(stand_ins) | st.text("abé中,.! ('\u0301\u200d&", max_size=6)
    text = draw(st.sampled_from(["", " "])).join(draw(st.lists(piece, max_size=10)))
    target, source = draw(spans(len(text))), draw(spans(len(masked.text)))
    weight = st.sampled_from([0.0, 0.1, 0.5, 1.0]) | st.floats(width=32)
    weights = np.array(
        draw(st.lists(weight, min_size=len(target), max_size=len(target))), np.float32
    )
    shape = len(target), len(source)
    matrix = np.resize(weights, shape) if target and source else np.zeros(shape, np.float32)
    return Decoded(text, target, source, matrix)


@dataclass
class Case:
    masked: Masked
    sentences: list[Span]
    decoded: list[Decoded]
    restored: list[Restored]

    @property
    def text(self) -> str:
        """The translation of the source, put together."""
        text, position = "", 0
        for sentence, restored in zip(self.sentences, self.restored, strict=True):
            start, end = extent(self.masked, sentence)
            assert position <= start <= end
            text += self.masked.source[position:start] + restored.text
            position = end
        return text + self.masked.source[position:]


@st.composite
def cases(draw: st.DrawFn, protection: Protection = EVERYTHING) -> Case:
    masked = protect(draw(documents()), protection)
    chosen = draw(sentences(len(masked.text)))
    outputs = [draw(decoded(masked)) for _ in chosen]
    restored = [restore(masked, s, d) for s, d in zip(chosen, outputs, strict=True)]
    return Case(masked, chosen, outputs, restored)


def parents(text: str) -> dict[str, str | None]:
    """Map each tag that has a name of its own to the element that it is in."""
    found: dict[str, str | None] = {}
    open_names: list[str] = []
    for tag in find_tags(text):
        if tag.is_closing:
            assert open_names.pop() == tag.name
            continue
        found[tag.name] = open_names[-1] if open_names else None
        if not tag.is_empty:
            open_names.append(tag.name)
    assert open_names == []
    return found


for_both_types = pytest.mark.parametrize("protection", [EVERYTHING, HTML], ids=["plain", "html"])


@for_both_types
@given(data=st.data())
def test_every_part_comes_out_once(protection: Protection, data: st.DataObject) -> None:
    case = data.draw(cases(protection))
    text = case.text
    inside = {part for sentence in case.sentences for part in case.masked.parts_of(sentence)}
    outputs = Counter(
        part.output for part in case.masked.parts if part in inside or part.kind is not Kind.TERM
    )
    longest_first = "|".join(sorted(map(re.escape, outputs), key=len, reverse=True))
    # What only looks like a part, as the time in "saw12:30saw", is text and may come out as well.
    whole = (case.masked.source[part.start : part.end] for part in case.masked.parts)
    lookalikes = Counter(re.findall(longest_first, case.masked.source)) - Counter(whole)
    assume(not outputs or not lookalikes)
    assert not outputs or Counter(re.findall(longest_first, text)) == outputs


@for_both_types
@given(data=st.data())
def test_elements_stay_whole_and_in_their_parents(
    protection: Protection, data: st.DataObject
) -> None:
    case = data.draw(cases(protection))
    assert parents(case.text) == parents(case.masked.source)
    tags = Counter(re.findall('<[^<>]*">|<[^<>]*>', case.masked.source))
    assert Counter(re.findall('<[^<>]*">|<[^<>]*>', case.text)) == tags


@for_both_types
@given(data=st.data())
def test_spans_are_those_of_what_came_out(protection: Protection, data: st.DataObject) -> None:
    case = data.draw(cases(protection))
    for sentence, restored in zip(case.sentences, case.restored, strict=True):
        expected = {(p.start, p.end): p.output for p in case.masked.parts_of(sentence)}
        position = 0
        for part in restored.parts:
            start, end = part.target
            assert position <= start < end <= len(restored.text)
            source = case.masked.source[slice(*part.source)]
            assert restored.text[start:end] == expected.pop(part.source, source)
            position = end
        assert not expected


@for_both_types
@given(data=st.data())
def test_spans_of_tokens_stay_in_the_text_and_in_order(
    protection: Protection, data: st.DataObject
) -> None:
    case = data.draw(cases(protection))
    for decoded, restored in zip(case.decoded, case.restored, strict=True):
        check_order([restored.map.to_new(*span) for span in decoded.target], len(restored.text))
        sources = [case.masked.source_span(*span) for span in decoded.source]
        check_order(sources, len(case.masked.source))


def check_order(spans: list[Span], length: int) -> None:
    assert all(0 <= start <= end <= length for start, end in spans)
    assert [start for start, _ in spans] == sorted(start for start, _ in spans)
    assert [end for _, end in spans] == sorted(end for _, end in spans)
