"""What of a text is kept, marked in both texts: on a real server, by each rpc that translates."""

from typing import Any

import pytest

from service.client import Client
from service.pb import translation_pb2 as pb
from tests.streams import segment

EVERY_KIND = [
    pb.PROTECTED_KIND_PLACEHOLDER,
    pb.PROTECTED_KIND_NUMBER,
    pb.PROTECTED_KIND_TAG,
]
TEXT = (
    " Hi {name} 🙂, <b>two men</b> paid $3.50 at https://a.org/b?c=d. 42 % me@b.org!\n"
    "A man in a blue shirt. SEE ME@C.ORG, TOM!"
)
FIELDS: dict[str, Any] = {
    "text_options": pb.TextOptions(
        protect=EVERY_KIND,
        glossary=[pb.GlossaryTerm(source="shirt", target="chemise")],
    ),
}


def translated(client: Client, content: str, **fields: Any) -> pb.Translation:
    [answer] = client.translate(pb.TranslateRequest(contents=[content], **fields)).translations
    return answer


def cut(text: str, span: pb.Span) -> str:
    return text[span.begin : span.end]


def kept(content: str, translation: pb.Translation) -> list[tuple[str, str, str]]:
    """The kind of each part, and what stands at its place in both texts."""
    return [
        (
            pb.KeptKind.Name(part.kind).removeprefix("KEPT_KIND_"),
            cut(content, part.source),
            cut(translation.translated_text, part.target),
        )
        for part in translation.kept_spans
    ]


def test_every_kind_is_marked_where_it_stands_in_both_texts(client: Client) -> None:
    found = kept(TEXT, translated(client, TEXT, **FIELDS))
    assert sorted(found) == sorted(
        [
            ("PLACEHOLDER", "{name}", "{name}"),
            ("UNKNOWN", "🙂", "🙂"),
            ("TAG", "<b>", "<b>"),
            ("TAG", "</b>", "</b>"),
            ("NUMBER", "$3.50", "$3.50"),
            ("ADDRESS", "https://a.org/b?c=d", "https://a.org/b?c=d"),
            ("NUMBER", "42 %", "42 %"),  # of a sentence that passes through
            ("ADDRESS", "me@b.org", "me@b.org"),
            ("TERM", "shirt", "chemise"),
            ("ADDRESS", "ME@C.ORG", "ME@C.ORG"),
        ]
    )


def test_they_are_in_the_order_of_the_translation(client: Client) -> None:
    places = [part.target.begin for part in translated(client, TEXT, **FIELDS).kept_spans]
    assert places == sorted(places)


def test_tags_between_sentences_are_marked_too(client: Client) -> None:
    content = "<p>A man.</p>\n<ul><li>Two <i>women</i></li><li>42<br></li></ul>"
    found = kept(content, translated(client, content, mime_type="text/html"))
    assert {kind for kind, _, _ in found} == {"TAG"}
    assert all(before == after for _, before, after in found)
    assert sum(before.count("<") for _, before, _ in found) == content.count("<")


def test_a_callers_own_span_is_marked_as_it_grew(client: Client) -> None:
    options = pb.TextOptions(
        protected_spans=[pb.ProtectedSpan(index=0, span=pb.Span(begin=3, end=4))]
    )
    translation = translated(client, "A man in a shirt.", text_options=options)
    assert kept("A man in a shirt.", translation) == [("SPAN", "man", "man")]


def test_nothing_is_marked_in_a_text_of_words(client: Client) -> None:
    assert not translated(client, "A man in a shirt.").kept_spans


@pytest.mark.parametrize("content", ["", "me@a.org", "42 %"])
def test_nothing_is_marked_in_a_text_that_passes_through(content: str, client: Client) -> None:
    for fields in ({}, FIELDS):
        translation = translated(client, content, **fields)
        assert translation.passed_through and not translation.kept_spans


def test_a_stream_marks_the_same(client: Client) -> None:
    settings = pb.TranslateStreamSettings(**FIELDS)
    sent = [segment("1", TEXT).segment]
    assert dict(client.translate_stream(sent, settings)) == {
        "1": translated(client, TEXT, **FIELDS)
    }
