"""Any text at all through a whole server, and what must hold for it."""

import re
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.client import Client
from service.errors import DeadlineExceeded, TranslationError
from service.pb import translation_pb2 as pb
from tests.running_server import RunningServer

LINE_BREAK = re.compile("\r\n|[\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")
# Tests share one connection: it holds nothing of what an example did.
EXAMPLES = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
TEXT = st.text(max_size=60) | st.text(
    max_size=60,
    alphabet=st.sampled_from(
        "A man dog. ?!,:;«»“”'-*•#1)%é\u0301ﬁ½Ａ．　"
        "\n\r\t\0\u00a0\u00ad\u200b\u200d\u202e🙂👍🏽🇫🇷中Я"
    ),
)
OPTIONS = st.builds(
    pb.TextOptions, split_sentences=st.none() | st.booleans(), no_break_spaces=st.booleans()
)
PROTECTION = st.builds(
    pb.TextOptions,
    protect=st.sets(st.sampled_from([1, 2, 3, 4])).map(sorted),
    glossary=st.sampled_from([[], [pb.GlossaryTerm(source="man", target="homme")]]),
)
MARKUP = st.lists(
    st.sampled_from(
        ["A man ", "<b>", "</b>", "<p>", "</p>", "<br/>", "{x}", "%s", " a@b.org", " $3.50 ",
         "&lt;", "&", "<", "<!--", "-->", "🙂", "\n", ". ", "中", "HELLO YOU "]
    ),
    max_size=12,
).map("".join)  # fmt: skip
ADDRESSES = ["https://a.org/b?c=d", "me@a.org", "www.a.org/x_(y)", "docs.a.com/b.html", "@man"]
LONG = "A man in a blue shirt. Two women are walking!\n" * 22_000
WORDS = "A man in a blue shirt. Two women café!"


def translate(client: Client, *contents: str, **fields: object) -> list[pb.Translation]:
    request = pb.TranslateRequest(
        contents=contents,
        options=pb.DecodingOptions(max_length=12),
        **fields,  # type: ignore[arg-type]
    )
    return list(client.translate(request).translations)


def spans(translation: pb.Translation) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    return [
        ((s.source.begin, s.source.end), (s.target.begin, s.target.end))
        for s in translation.sentences
    ]


@EXAMPLES
@given(contents=st.lists(TEXT, min_size=1, max_size=4), options=OPTIONS)
def test_there_are_as_many_texts_and_lines_out_as_in(
    client: Client, contents: list[str], options: pb.TextOptions
) -> None:
    translations = translate(client, *contents, text_options=options)
    assert len(translations) == len(contents)
    for text, translation in zip(contents, translations, strict=True):
        breaks = LINE_BREAK.findall(translation.translated_text)
        assert breaks == LINE_BREAK.findall(text)


@EXAMPLES
@given(text=TEXT)
def test_spans_slice_the_text_and_what_lies_outside_or_passes_is_copied(
    client: Client, text: str
) -> None:
    (translation,) = translate(client, text)
    target = translation.translated_text
    source_end = target_end = 0
    for sentence, ((begin, end), (target_begin, last)) in zip(
        translation.sentences, spans(translation), strict=True
    ):
        assert source_end <= begin < end <= len(text)
        assert text[source_end:begin] == target[target_end:target_begin]
        best = text[begin:end] if sentence.passed_through else sentence.hypotheses[0].text
        assert target[target_begin:last] == best
        source_end, target_end = end, last
    assert text[source_end:] == target[target_end:]
    assert translation.passed_through == all(s.passed_through for s in translation.sentences)


@EXAMPLES
@given(text=TEXT)
def test_attention_spans_are_in_their_sentence(client: Client, text: str) -> None:
    (translation,) = translate(client, text, include_attention=True)
    for sentence in translation.sentences:
        for hypothesis in sentence.hypotheses:
            for token in hypothesis.attention.source_tokens:
                assert sentence.source.begin <= token.begin <= token.end <= sentence.source.end
            for token in hypothesis.attention.target_tokens:
                assert sentence.target.begin <= token.begin <= token.end <= sentence.target.end


@EXAMPLES
@given(text=TEXT | MARKUP, options=PROTECTION, mime_type=st.sampled_from(["", "text/html"]))
def test_whatever_is_protected_any_text_is_translated(
    client: Client, text: str, options: pb.TextOptions, mime_type: str
) -> None:
    fields = {"text_options": options, "mime_type": mime_type, "include_attention": True}
    (translation,) = translate(client, text, **fields)
    target_end = 0
    for sentence, ((begin, end), (target_begin, last)) in zip(
        translation.sentences, spans(translation), strict=True
    ):
        assert 0 <= begin <= end <= len(text)
        assert target_end <= target_begin <= last <= len(translation.translated_text)
        best = text[begin:end] if sentence.passed_through else sentence.hypotheses[0].text
        assert translation.translated_text[target_begin:last] == best
        target_end = last


@EXAMPLES
@given(texts=st.lists(TEXT, min_size=1, max_size=3), address=st.sampled_from(ADDRESSES))
def test_addresses_come_out_of_any_text(client: Client, texts: list[str], address: str) -> None:
    text = f" {address} ".join(["", *texts])
    (translation,) = translate(client, text)
    assert translation.translated_text.count(address) == text.count(address)


@EXAMPLES
@given(
    text=st.text(
        max_size=80,
        alphabet=st.sampled_from(" \n\r\t\0\u00a0\u2003\u3000\u200b12345.,;:!?%€→🙂❤\ufe0f"),
    )
)  # fmt: skip
def test_what_has_no_words_passes_through(client: Client, text: str) -> None:
    (translation,) = translate(client, text)
    assert translation.passed_through and translation.translated_text == text


@pytest.mark.parametrize(
    "text", ["https://a.org/b?c=d.", "me@a.org", "Привет!", "你好。世界", "ابت"]
)
def test_addresses_and_unknown_scripts_pass_through(client: Client, text: str) -> None:
    (translation,) = translate(client, text)
    assert translation.passed_through and translation.translated_text == text


def full_width(text: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


@pytest.mark.parametrize(
    "spell",
    [
        lambda text: unicodedata.normalize("NFC", text),
        lambda text: unicodedata.normalize("NFD", text),
        full_width,
        lambda text: text.replace("i", "i\u00ad"),
        lambda text: text.replace("n ", "n\u200b "),
        lambda text: text.replace("a", "\u2060a\u200c"),
        lambda text: text.replace("m", "m\0"),
        lambda text: text.replace("blue", "\u202bblue\u202c"),
        lambda text: text.replace(" in ", "\u00a0in\u3000"),
    ],
    ids=["NFC", "NFD", "full width", "soft hyphen", "zero-width space", "joiners", "NUL",
         "direction", "other spaces"],
)  # fmt: skip
def test_another_spelling_is_translated_the_same(
    client: Client, spell: Callable[[str], str]
) -> None:
    plain, other = translate(client, WORDS, spell(WORDS))
    assert other.translated_text == plain.translated_text
    assert len(other.sentences) == 2


def test_line_breaks_and_marks_around_a_text_are_copied(client: Client) -> None:
    plain, windows, right_to_left = translate(
        client, "A man.\nA dog.", "A man.\r\nA dog.\r\n", "\u202bA man.\u202c\n\0A dog."
    )
    assert windows.translated_text == plain.translated_text.replace("\n", "\r\n") + "\r\n"
    marked = plain.translated_text.replace("\n", "\u202c\n\0")
    assert right_to_left.translated_text == "\u202b" + marked


def test_a_text_that_takes_too_long_ends_with_its_deadline(server: RunningServer) -> None:
    with Client(server.address, timeout_seconds=1.0) as impatient:
        assert len(LONG) > 1_000_000
        with pytest.raises(DeadlineExceeded):
            translate(impatient, LONG)


def test_a_long_text_lets_others_pass(server: RunningServer, client: Client) -> None:
    (expected,) = translate(client, WORDS)
    with ThreadPoolExecutor(1) as pool:
        with Client(server.address) as patient:
            long = pool.submit(translate, patient, LONG)
            assert [translate(client, WORDS) for _ in range(20)] == [[expected]] * 20
            assert not long.done()
        with pytest.raises(TranslationError):  # it has left
            long.result()
