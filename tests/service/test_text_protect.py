"""What is found in a text and hidden from the model."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import InvalidArgument
from service.text.protect import (
    FOUND_KINDS,
    Kind,
    Masked,
    Protection,
    find_tags,
    may_have_address,
    protect,
)

HTML = Protection(FOUND_KINDS, html=True)


def hidden(text: str, kind: Kind) -> list[str]:
    return [text[p.start : p.end] for p in protect(text, Protection(frozenset([kind]))).parts]


def seen(masked: Masked) -> str:
    """What the model sees, with a star for each stand-in."""
    text, position = "", 0
    for part in masked.parts:
        text += masked.text[position : part.masked[0]] + "*"
        position = part.masked[1]
    return text + masked.text[position:]


@pytest.mark.parametrize(
    "placeholder",
    ["{name}", "{}", "{0:.2f}", "{user.name}", "{{ name }}", "{% if x %}", "${x}", "#{x}", "$name",
     "%s", "%d", "%1$s", "%.2f", "%5d", "%ld", "%@", "%%", "%(n)s", "%(total).2f", "%NAME%",
     "__NAME__", "{a}{b}", "{host}:{port}", "{{{x}}}"],
)  # fmt: skip
def test_placeholders_are_hidden(placeholder: str) -> None:
    assert hidden(f"See {placeholder}, please.", Kind.PLACEHOLDER) == [placeholder]


@pytest.mark.parametrize(
    "text", ["It rose 5 % since May.", "100% sure", "$5", "{ }", "{a note}", "a_b", "50%off"]
)
def test_signs_that_only_look_like_placeholders_are_text(text: str) -> None:
    assert hidden(text, Kind.PLACEHOLDER) == []


@pytest.mark.parametrize(
    "address",
    ["https://a.org", "http://a.org/b_(c)?d=1&e=%20#f", "www.a.org", "mailto:me@a.org",
     "me@mail.a.org", "first.last+tag@a.co.uk", "example.com", "example.fr",
     "docs.example.com/a/b.html", "@me"],
)  # fmt: skip
@pytest.mark.parametrize("around", ["{}", "See {}.", "({})", "“{}”, he said", "{}!"])
def test_addresses_are_hidden_without_the_signs_around_them(address: str, around: str) -> None:
    assert hidden(around.format(address), Kind.ADDRESS) == [address]


@pytest.mark.parametrize("sign", ["-", "+", ".", "...", "--", "1", "1."])
@pytest.mark.parametrize("protection", [Protection(), Protection(html=True)])
@pytest.mark.parametrize("address", ["https://e.com/a?b=c", "mailto:me@a.org", "www.a.museum/b"])
def test_an_address_is_whole_behind_a_sign(address: str, protection: Protection, sign: str) -> None:
    masked = protect(f"The car {sign}{address} is red.", protection)
    assert [part.output.removeprefix(sign) for part in masked.parts] == [address]


@pytest.mark.parametrize("text", ["Thanks .@me", "So -@me", "at...example.com", "see .example.com"])
def test_a_name_is_an_address_behind_a_sign(text: str) -> None:
    assert hidden(text, Kind.ADDRESS) == [re.findall(r"@me|example.com", text)[0]]


def test_addresses_are_hidden_unasked() -> None:
    text = "See https://a.org, {name}."
    assert [part.output for part in protect(text, Protection()).parts] == ["https://a.org"]


@pytest.mark.parametrize(
    "text", ["He left.Nobody knew.", "3 @ $5", "a@b", "Sir: yes", "%@", "I saw www", "Mr. T.J. Fox"]
)
def test_what_only_looks_like_an_address_is_text(text: str) -> None:
    assert hidden(text, Kind.ADDRESS) == []


@given(
    st.text("a.:/@w-c o", max_size=12) | st.sampled_from(["me@a.org", "b.com", "www.c", "x://y"])
)
def test_a_text_without_a_sign_of_an_address_has_none(text: str) -> None:
    assert may_have_address(text) or hidden(text, Kind.ADDRESS) == []


@pytest.mark.parametrize(
    "number",
    ["$3.50", "US$ 12", "3,50 €", "€1,000.00", "5 km", "-3.5°C", "20 %", "100km/h", "8GB",
     "12/05/2024", "2024-05-12", "10:30", "1,000,000", "1 000 000", "1995", "USD 5", "42", "16:9"],
)  # fmt: skip
def test_numbers_are_hidden_with_their_units(number: str) -> None:
    assert hidden(f"It was {number}, he said.", Kind.NUMBER) == [number]


@pytest.mark.parametrize("text", ["He has 3 cats.", "A4", "B2B", "5 minutes", "3 small dogs"])
def test_small_numbers_of_things_are_text(text: str) -> None:
    assert hidden(text, Kind.NUMBER) == []


def test_a_part_has_all_of_the_word_that_it_is_in() -> None:
    assert hidden("open file_%s_new and x{n}", Kind.PLACEHOLDER) == ["file_%s_new", "x{n}"]


def test_a_script_without_spaces_is_no_word_around_a_part() -> None:
    masked = protect("你好{name}先生", Protection(frozenset([Kind.PLACEHOLDER])))
    assert seen(masked) == "你好*先生"


def test_stand_ins_are_words_that_are_not_in_the_text() -> None:
    masked = protect("tom: {a} {b} {c}", Protection(frozenset([Kind.PLACEHOLDER])))
    stand_ins = [part.stand_in for part in masked.parts]
    assert len(set(stand_ins)) == 3
    assert not {"tom"} & {word.casefold() for word in stand_ins}


def test_a_number_stands_for_a_number() -> None:
    masked = protect("It costs $3.50.", HTML)
    assert masked.parts[0].stand_in.isdigit()


def test_spans_of_the_caller_are_hidden_and_united_with_what_touches_them() -> None:
    text = "Say Hello World and {name}!"
    masked = protect(text, Protection(frozenset([Kind.PLACEHOLDER])), [(4, 9), (9, 15), (21, 24)])
    assert [text[p.start : p.end] for p in masked.parts] == ["Hello World", "{name}"]


@pytest.mark.parametrize("span", [(0, 0), (3, 2), (-1, 2), (0, 6)])
def test_spans_of_the_caller_must_be_in_the_text(span: tuple[int, int]) -> None:
    with pytest.raises(InvalidArgument, match="which has 5 code points"):
        protect("Hello", Protection(), [span])


def test_a_span_of_the_caller_has_both_tags_of_a_pair() -> None:
    text = "a <b>c d</b> e"
    masked = protect(text, HTML, [(6, 12)])
    assert [p.output for p in masked.parts] == ["<b>c d</b>"]
    assert masked.tags == ()


def test_terms_are_left_alone_inside_of_other_parts() -> None:
    protection = Protection(FOUND_KINDS, glossary={"a": "x"})
    assert [p.output for p in protect("https://a.org/a a", protection).parts] == [
        "https://a.org/a",
        "x",
    ]


def test_spans_and_terms_are_no_kinds_to_look_for() -> None:
    with pytest.raises(InvalidArgument, match="span"):
        Protection(frozenset([Kind.SPAN]))


def test_nothing_to_protect_is_nothing() -> None:
    assert not Protection()
    assert protect("<b>{x}</b>", Protection()).text == "<b>{x}</b>"


def test_blocks_are_lines_and_other_tags_are_nothing() -> None:
    masked = protect("<p>One <b>big</b>\n house.</p><ul><li>Two</ul>", HTML)
    assert masked.text.split("\n") == ["", "One big house.", "", "", "Two", ""]


def test_html_is_read_as_text() -> None:
    masked = protect("caf&eacute; &amp; th&#233; &lt;b&gt; &unknown; R&D", HTML)
    assert masked.text == "café & thé <b> &unknown; R&D"


def test_spans_lead_from_what_the_model_sees_to_what_the_caller_wrote() -> None:
    text = "<p>Caf&eacute; of {name}.</p>"
    masked = protect(text, HTML)
    for word, source in [("Café", "Caf&eacute;"), ("of", "of"), ("Tom", "{name}"), (".", ".")]:
        start = masked.text.index(word)
        assert text[slice(*masked.source_span(start, start + len(word)))] == source


@pytest.mark.parametrize(
    "html",
    ["<script>if (a < b) {}</script>", "<style>b {}</style>", "<pre>a  b</pre>", "<!-- a <b> -->",
     "<svg><path/></svg>", "<div translate='no'>a <b>c</b></div>", "<!doctype html>", "<?xml a?>",
     "<script>a</script\n>", "<STYLE>b</Style x>", "<script>'</scripts>'</script>", "<script/>",
     "<!-->", "<!--->", "<!-- a --!>"],
)  # fmt: skip
def test_what_is_no_text_is_one_tag(html: str) -> None:
    masked = protect(f"See {html} this", HTML)
    assert [masked.source[t.start : t.end] for t in masked.tags] == [html]
    assert masked.text.split() == ["See", "this"]


@pytest.mark.parametrize(
    "html",
    ["<script>if (a < b)", "<style>b {}", "<!-- a <b>c</b>", "<script></p>",
     '<script src="a"><script>', "<style></script>", "<!-- a -- >"],
)  # fmt: skip
def test_what_is_no_text_reaches_to_the_end_if_nobody_closes_it(html: str) -> None:
    html += "\nSee <b>this</b> https://a.org."
    masked = protect(f"The car.{html}", HTML)
    assert [masked.source[t.start : t.end] for t in masked.tags] == [html]
    assert masked.text.split() == ["The", "car."]


@pytest.mark.parametrize(
    "html",
    ["<code>a <b>c</b></code>", "<span translate=no>a</span>", '<i class="x notranslate">a</i>'],
)
def test_what_must_not_be_translated_is_hidden_in_html(html: str) -> None:
    masked = protect(f"See {html} there", HTML)
    assert [p.output for p in masked.parts] == [html]
    assert seen(masked) == "See * there"


@pytest.mark.parametrize(
    "text", ["a < b > c", "x <- y", "<3", "<me@a.org>", "<https://a.org>", "i<j and k>l", "< b >"]
)
def test_signs_that_only_look_like_tags_are_text(text: str) -> None:
    assert find_tags(text) == () or text == "i<j and k>l"


def test_tags_that_cross_or_stand_alone_have_no_partner() -> None:
    tags = find_tags("<b><i></b></i><br></p><B></b>")
    assert [tag.partner for tag in tags] == [2, None, 0, None, None, None, 7, 6]


def test_a_quoted_attribute_may_hold_a_bracket() -> None:
    assert [(t.start, t.end) for t in find_tags("""a <b c='>"' d=">">e""")] == [(2, 18)]


def test_stand_ins_stay_apart_when_the_tags_between_them_go() -> None:
    masked = protect("{a}<b>{b}</b>px <i>x</i>{c}", HTML)
    assert seen(masked) == "* * px x *"


@pytest.mark.parametrize(
    "text",
    ["{a}: {b}", "<b>{a}</b> https://a.org 12:30", "{a}!", "(https://a.org), www.b.org!",
     "<first.last+tag@mail.a.org>;", "MAILTO:me@a.org", "https://a.org/b?c=d"],
)  # fmt: skip
def test_parts_alone_have_nothing_to_translate(text: str) -> None:
    masked = protect(text, HTML)
    assert not masked.is_translatable((0, len(masked.text)))


@pytest.mark.parametrize(
    "text",
    ["Dear {a}", "engine", "{a} engine", "see https://a.org", "me@a.org wrote", "ok,a@b.org!"],
)
def test_words_and_terms_have_something_to_translate(text: str) -> None:
    masked = protect(text, Protection(FOUND_KINDS, glossary={"engine": "moteur"}))
    assert masked.is_translatable((0, len(masked.text)))


PIECES = [
    "<b>",
    "</b>",
    "<br>",
    "<!--",
    "-->",
    "&amp;",
    "&",
    "{x}",
    "{",
    "%s",
    "http://",
    "@",
    "1",
    ".",
]


@given(text=st.lists(st.sampled_from([*PIECES, " ", "a", "中"]) | st.text(max_size=3)).map("".join))
def test_hiding_anything_keeps_order_and_covers_the_text(text: str) -> None:
    for protection in (HTML, Protection(FOUND_KINDS)):
        masked = protect(text, protection)
        hidden = sorted(
            [(p.start, p.end, p.masked) for p in masked.parts]
            + [(t.start, t.end, t.masked) for t in masked.tags]
        )
        position = 0
        for start, end, (masked_start, masked_end) in hidden:
            assert position <= start < end <= len(text)
            assert 0 <= masked_start <= masked_end <= len(masked.text)
            position = end
        assert masked.source_span(0, len(masked.text))[1] <= len(text)
