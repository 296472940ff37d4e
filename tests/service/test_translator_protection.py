"""What must not change, through the whole translator with a tiny model that writes nonsense."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.bundle import Bundle
from service.decoding import DecodingOptions
from service.engine import load_engine
from service.errors import InvalidArgument
from service.text.protect import FOUND_KINDS, Kind, Protection, protect
from service.translator import TextOptions, Translation, Translator

OPTIONS = DecodingOptions(max_length=16)
EVERYTHING = Protection(FOUND_KINDS, glossary={"shirt": "chemise"})
PARTS = ["{name}", "%(n)s", "%s", "${x}", "https://a.org/b?c=d.e", "me@a.org", "$3.50", "12:30"]


@pytest.fixture(scope="module")
def translator(bundle: Bundle) -> Iterator[Translator]:
    engine = load_engine(bundle, precision="fp32", workers=1, max_rows=16)
    yield Translator(bundle, engine)
    engine.close()


def translate(
    translator: Translator, text: str, options: TextOptions, decoding: DecodingOptions = OPTIONS
) -> Translation:
    return translator.translate([text], decoding, text_options=options)[0]


@settings(max_examples=40, deadline=None)
@given(parts=st.lists(st.sampled_from(PARTS), min_size=1, max_size=4, unique=True))
def test_every_part_comes_out_exactly_once(translator: Translator, parts: list[str]) -> None:
    text = "A man in a blue shirt. ".join(f"{part} walking. Two women " for part in parts)
    result = translate(translator, text, TextOptions(protection=EVERYTHING)).text
    for part in parts:
        assert result.count(part) == text.count(part) == 1
    assert result.count("chemise") == text.count("shirt")


@pytest.mark.parametrize("sign", ["🙂", "👨\u200d👩\u200d👧", "出口", "Zażółć", "½"])
def test_what_the_model_cannot_spell_is_never_lost(translator: Translator, sign: str) -> None:
    translation = translate(translator, f"A man {sign} in a blue shirt.", TextOptions())
    assert translation.text.count(sign) == 1
    assert len(translation.sentences) == 1


def test_protected_spans_are_counted_in_their_text(translator: Translator) -> None:
    options = TextOptions(protected_spans={1: [(2, 5)]})
    first, second = translator.translate(["A man.", "A man in a shirt."], OPTIONS, None, options)
    assert second.text.count("man") == 1
    assert first.text == translator.translate(["A man."], OPTIONS)[0].text
    with pytest.raises(InvalidArgument, match=r"contents\[0\]: protected span 2:99"):
        translate(translator, "A man.", TextOptions(protected_spans={0: [(2, 99)]}))


def test_tags_stay_paired_and_the_text_around_them_is_escaped(translator: Translator) -> None:
    html = "<p>A <b>man</b> &amp; a dog.</p>\n<ul><li>Two women</li><li>42</li></ul>"
    result = translate(translator, html, TextOptions(protection=Protection(html=True))).text
    assert result.startswith("<p>") and result.endswith("</li><li>42</li></ul>")
    assert result.count("<b>") == result.count("</b>") == 1
    assert result.index("<b>") < result.index("</b>") < result.index("</p>\n<ul><li>")
    assert "&" not in result.replace("&amp;", "").replace("&lt;", "").replace("&gt;", "")


def test_addresses_come_out_unasked(translator: Translator) -> None:
    source = "A man in https://a.org/b?c=d.e, me@a.org! Two women, www.a.org and @man"
    result = translate(translator, source, TextOptions())
    assert len(result.sentences) == 2
    for address in ("https://a.org/b?c=d.e", "me@a.org", "www.a.org", "@man"):
        assert result.text.count(address) == 1


def test_what_has_nothing_to_protect_is_translated_as_if_nothing_were(
    translator: Translator,
) -> None:
    text = "A man. Two women: a dog!"
    plain = translate(translator, text, TextOptions())
    careful = translate(translator, text, TextOptions(protection=EVERYTHING))
    assert careful.text == plain.text
    hypotheses = [sentence.hypotheses[0] for sentence in careful.sentences]
    assert [hypothesis.attention for hypothesis in hypotheses] == [None, None]


def test_only_what_is_protected_is_nothing_to_translate(translator: Translator) -> None:
    options = TextOptions(protection=Protection(frozenset([Kind.PLACEHOLDER, Kind.TAG])))
    translation = translate(translator, "<b>{name}</b>", options)
    assert translation.passed_through and translation.text == "<b>{name}</b>"


@pytest.mark.parametrize(
    ("source", "html"),
    [
        ("\n * A man {name} 🙂 in a shirt. <b>Two</b> $3.50 women.", False),
        ("<p><b>&eacute; A <i>man</i>.<br>Two</b> me@a.org <i></p>women</i>", True),
    ],
)
def test_spans_of_tokens_are_in_the_callers_texts(
    translator: Translator, source: str, html: bool
) -> None:
    decoding = DecodingOptions(beam_size=2, num_hypotheses=2, max_length=16, attention=True)
    options = TextOptions(protection=replace(EVERYTHING, html=html))
    translation = translate(translator, source, options, decoding)
    for sentence in translation.sentences:
        best = sentence.hypotheses[0]
        assert translation.text[slice(*sentence.target)] == best.text
        for hypothesis in sentence.hypotheses:
            attention = hypothesis.attention
            assert attention is not None
            shape = len(attention.target_tokens), len(attention.source_tokens)
            assert attention.weights.shape == shape
            np.testing.assert_allclose(attention.weights.sum(axis=1), 1, atol=1e-5)
            for token in attention.source_tokens:
                assert sentence.source[0] <= token.start <= token.end <= sentence.source[1]
            end = sentence.target[0] + len(hypothesis.text)
            for token in attention.target_tokens:
                assert sentence.target[0] <= token.start <= token.end <= end


def test_capitals_are_read_in_the_usual_case_and_written_in_capitals(
    translator: Translator,
) -> None:
    text = "THE QUICK BROWN FOX JUMPS OVER {name}."
    options = TextOptions(protection=EVERYTHING)
    result = translate(translator, text, options).text
    assert result.count("{name}") == 1
    assert result.replace("{name}", "") == result.replace("{name}", "").upper()
    plain = translate(translator, "The quick brown fox.", TextOptions()).text
    capitals = translate(translator, "THE QUICK BROWN FOX.", TextOptions()).text
    assert capitals == plain.upper()


def test_a_long_sentence_is_never_cut_inside_a_part(translator: Translator) -> None:
    parts = [f"{{name{number}}}" for number in range(60)]
    text = "".join(f"中{part}" for part in parts) + " A man in a blue shirt"
    options = TextOptions(protection=Protection(frozenset([Kind.PLACEHOLDER])))
    translation = translate(translator, "A man " + text, options)
    assert all(translation.text.count(part) == 1 for part in parts)


def test_everything_protected_is_marked_where_it_stands(translator: Translator) -> None:
    html = "<p><b>&eacute; A <i>man</i> 🙂.<br>Two</b> me@a.org, 42 shirts <i></p>women</i> 12:30"
    plain = "\n * A man {name} in a shirt. <b>Two</b> $3.50 women 🙂. 12:30\nme@a.org A MAN Zażółć"
    for source, is_html in ((plain, False), (html, True)):
        protection = replace(EVERYTHING, html=is_html)
        translation = translate(translator, source, TextOptions(protection=protection))
        assert not translation.passed_through
        masked = protect(source, protection)
        named = {part.source for part in translation.kept if part.kind is not Kind.UNKNOWN}
        # Tags that stand together are one.
        assert {(part.start, part.end) for part in masked.parts} <= named
        assert all(any(s <= tag.start and tag.end <= e for s, e in named) for tag in masked.tags)
        for part in translation.kept:
            target = translation.text[slice(*part.target)]
            assert target == ("chemise" if part.kind is Kind.TERM else source[slice(*part.source)])
        places = [part.target for part in translation.kept]
        assert places == sorted(places)
        assert sum(part.kind is Kind.UNKNOWN for part in translation.kept) >= 1
