"""Lines of each format: what is translated in them, and what comes out."""

import json

import pytest

from service.client.bulk.formats import Format, JsonFormat, LineFault, TextFormat, TsvFormat
from service.pb import translation_pb2 as pb

FAULT = LineFault("no reason")


def translated(format: Format, line: str, text: str) -> str:
    return format.segment(line).translated(pb.Translation(translated_text=text))


def test_a_translation_takes_the_place_of_its_line() -> None:
    assert TextFormat().segment("a\tb").text == "a\tb"
    assert translated(TextFormat(), "one", "un") == "un"


def test_a_translation_is_one_line_whatever_a_term_becomes() -> None:
    assert translated(TextFormat(), "one", "u\nn") == "u n"
    assert translated(TsvFormat(), "one", "u\n\tn") == "one\tu  n"
    assert translated(JsonFormat(), '{"text": "one"}', "u\nn").count("\n") == 0


@pytest.mark.parametrize(
    ("format", "line"),
    [
        (TsvFormat(), "one\ttwo\tthree\ttrois"),
        (TsvFormat(2), "one\ttwo\tthree\ttrois"),
        (TsvFormat(2, replace=True), "one\ttrois\tthree"),
        (TsvFormat(3, replace=True), "one\ttwo\ttrois"),
    ],
)
def test_a_column_is_translated_and_the_others_stay(format: TsvFormat, line: str) -> None:
    cells = "one\ttwo\tthree"
    assert format.segment(cells).text == cells.split("\t")[format.column - 1]
    assert translated(format, cells, "trois") == line


def test_a_missing_column_is_told_with_how_many_there_are() -> None:
    with pytest.raises(LineFault, match="no column 3, there are 2"):
        TsvFormat(3).segment("one\ttwo")


def test_an_object_keeps_its_fields_and_their_order() -> None:
    line = '{"id": 12345678901234567890, "text": "café", "more": [1.5, null, {"x": true}]}'
    assert JsonFormat().segment(line).text == "café"
    assert translated(JsonFormat(), line, "naïf") == line[:-1] + ', "translation": "naïf"}'
    assert translated(JsonFormat(into="text"), line, "naïf") == line.replace("café", "naïf")


def test_what_an_earlier_run_said_of_an_object_goes() -> None:
    line = '{"error": "slow", "id": 1, "text": "one", "sentences": [], "kept": []}'
    assert translated(JsonFormat(), line, "un") == '{"id": 1, "text": "one", "translation": "un"}'
    failed = JsonFormat().segment(line).failed(FAULT)
    assert failed == '{"id": 1, "text": "one", "error": "no reason"}'
    named = JsonFormat(field="error").segment('{"error": "the text itself"}')
    assert named.translated(pb.Translation(translated_text="le texte")) == (
        '{"error": "the text itself", "translation": "le texte"}'
    )


def test_an_object_says_what_was_kept_if_it_says_anything_of_the_translation() -> None:
    place = pb.Span(begin=2, end=5)
    span = pb.KeptSpan(source=place, target=pb.Span(begin=0, end=3), kind=pb.KEPT_KIND_ADDRESS)
    translation = pb.Translation(translated_text="a.b c", kept_spans=[span])
    segment = JsonFormat(details=True).segment('{"text": "c a.b"}')
    assert json.loads(segment.translated(translation))["kept"] == [
        {"source": [2, 5], "target": [0, 3], "kind": "address"}
    ]
    assert "kept" not in translated(JsonFormat(details=True), '{"text": "c"}', "c")


def test_an_object_may_come_after_a_byte_order_mark() -> None:
    assert translated(JsonFormat(), '\ufeff{"text": "one"}', "un") == (
        '{"text": "one", "translation": "un"}'
    )


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ('{"text": "one", "x": NaN}', "not JSON"),
        ('{"text": "one", "x": 1e999}', "not JSON"),
        ('{"text": ' + "[" * 100_000, "not JSON"),
        ("[]", "not a JSON object"),
        ('{"texts": "one"}', "no text in the field 'text'"),
        ('{"text": 1}', "no text in the field 'text'"),
        ('{"text": "\\ud800"}', "a lone surrogate, which is not Unicode"),
        ('{"text": "one", "id": "\\ud800"}', "a lone surrogate, which is not Unicode"),
    ],
)
def test_what_is_no_object_with_a_text_is_told(line: str, fault: str) -> None:
    with pytest.raises(LineFault) as raised:
        JsonFormat().segment(line)
    assert str(raised.value) == fault


def test_a_line_that_failed_keeps_what_was_read_of_it() -> None:
    assert TextFormat().segment("one").failed(FAULT) == TextFormat().unread(FAULT) == ""
    assert TsvFormat(2).segment("one\ttwo").failed(FAULT) == "one\ttwo\t"
    assert TsvFormat(2, replace=True).segment("one\ttwo").failed(FAULT) == "one\t"
    failed = json.loads(JsonFormat().segment('{"text": "one"}').failed(FAULT))
    assert failed == {"text": "one", **json.loads(JsonFormat().unread(FAULT))}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (TextFormat(), TsvFormat()),
        (TsvFormat(), TsvFormat(2)),
        (TsvFormat(), TsvFormat(replace=True)),
        (JsonFormat(), JsonFormat(field="source")),
        (JsonFormat(), JsonFormat(into="target")),
        (JsonFormat(), JsonFormat(details=True)),
    ],
)
def test_formats_that_write_other_lines_have_other_settings(one: Format, other: Format) -> None:
    assert one.settings != other.settings
