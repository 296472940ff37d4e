"""Where protected parts and tags go, for translations whose alignment is known."""

import re

import numpy as np
import pytest

from service.text.protect import FOUND_KINDS, Decoded, Masked, Protection, extent, protect, restore
from service.text.rewriting import Span

HTML = Protection(FOUND_KINDS, html=True)
PLAIN = Protection(FOUND_KINDS)


def tokens(text: str) -> list[Span]:
    return [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]


def aligned(masked: Masked, text: str, links: str) -> Decoded:
    """A translation; `links` has the number of the source word of each of its words, `-` for none.

    What has none looks at the end of the sentence.
    """
    target, source = tokens(text), tokens(masked.text)
    weights = np.zeros((len(target), len(source) + 1), np.float32)
    for row, link in enumerate(links.split()):
        weights[row, -1 if link == "-" else int(link)] = 1
    end = len(masked.text)
    return Decoded(text, target, [*source, (end, end)], weights)


def translated(
    source: str,
    text: str,
    links: str,
    protection: Protection = HTML,
    spans: list[Span] | None = None,
) -> str:
    """The whole of `source`, one sentence, with its translation put in."""
    masked = protect(source, protection, spans or [])
    sentence = (0, len(masked.text))
    start, end = extent(masked, sentence)
    final = restore(masked, sentence, aligned(masked, text, links)).text
    return source[:start] + final + source[end:]


@pytest.mark.parametrize(
    "source, text, links, expected",
    [
        ("I see {name}.", "Je vois Tom.", "0 1 2 3", "Je vois {name}."),
        ("I see {name}.", "JE VOIS TOM.", "0 1 2 3", "JE VOIS {name}."),
        ("{a} sees {b}", "Boston voit Tom", "0 1 2", "{b} voit {a}"),
        (
            "It costs $3.50 a day.",
            "Il coûte 10 par jour.",
            "0 1 2 3 4 5",
            "Il coûte $3.50 par jour.",
        ),
    ],
)
def test_a_part_takes_the_place_of_its_stand_in(
    source: str, text: str, links: str, expected: str
) -> None:
    assert translated(source, text, links) == expected


@pytest.mark.parametrize(
    "source, text, links, expected",
    [
        # Between the words before and after it.
        ("I see {name} now.", "Je vois maintenant.", "0 1 3 4", "Je vois {name} maintenant."),
        ("{name} sees me.", "On me voit.", "- 2 1 3", "{name} On me voit."),
        ("{name} sees.", "Vu.", "1 2", "{name} Vu."),
        ("I see {name}.", "Je vois !", "0 1 3", "Je vois {name} !"),
        ("I see {name}", "Je vois", "0 1", "Je vois {name}"),
        ("I see {name} now", "", "", "{name}"),
        ("See {a}, {b}", "Vois", "0", "Vois {a} {b}"),
        # Not into what is written as one.
        ("Does {name} see it", "L'a-t-il vu", "0 - - - - - 0 2", "L'a-t-il {name} vu"),
        ("我看 {name} 了", "我看了", "0", "我看了{name}"),
    ],
)  # fmt: skip
def test_a_part_that_the_model_left_out_goes_where_links_cross_least(
    source: str, text: str, links: str, expected: str
) -> None:
    assert translated(source, text, links) == expected


@pytest.mark.parametrize(
    "source, text, links, expected",
    [
        ("I see {name}.", "Je vois Marie.", "0 1 2 3", "Je vois {name}."),
        ("I see {name}.", "Je vois l'homme.", "0 1 2 2 2 3", "Je vois l'{name}."),
        ("It is 12:30.", "C'est 10h ou 1030.", "0 0 1 1 - 2 3", "C'est 10h ou 12:30."),
    ],
)
def test_a_word_that_looks_at_a_part_stands_for_it(
    source: str, text: str, links: str, expected: str
) -> None:
    assert translated(source, text, links) == expected


@pytest.mark.parametrize(
    "text, links, expected",
    [
        ("Tom et Tom voient.", "1 - 0 1 2", "et {name} voient."),
        ("Tom voit Tom.", "0 1 1 2", "{name} voit."),
        ("Tom, Tom", "0 - 1", "{name},"),
    ],
)
def test_a_stand_in_that_comes_twice_is_the_part_once(text: str, links: str, expected: str) -> None:
    assert translated("{name} sees.", text, links) == expected


def test_a_stand_in_that_comes_twice_may_be_another_part() -> None:
    assert translated("{a} sees {b}", "Boston voit Boston", "0 1 2") == "{a} voit {b}"


@pytest.mark.parametrize(
    "source, text, links, expected",
    [
        ("an engine", "une machine", "0 1", "une moteur"),
        ("the engine", "l'engin", "0 1 1", "l'moteur"),
        ("Engine off", "Machine arrêtée", "0 1", "Moteur arrêtée"),
        ("a search engine here", "un outil de recherche ici", "0 2 1 1 3", "un moteur de R&D ici"),
        ("this engine", "ceci", "0", "ceci moteur"),
    ],
)
def test_the_translation_of_a_term_is_replaced(
    source: str, text: str, links: str, expected: str
) -> None:
    glossary = {"engine": "moteur", "search engine": "moteur de R&D"}
    assert translated(source, text, links, Protection(glossary=glossary)) == expected


@pytest.mark.parametrize(
    "source, text, links, expected",
    [
        ("a <b>red</b> car", "une voiture rouge", "0 2 1", "une voiture <b>rouge</b>"),
        ("a <b>red car</b>!", "une voiture rouge !", "0 2 1 3", "une <b>voiture rouge</b> !"),
        ("<b>red</b> <i>car</i> x", "voiture rouge x", "1 0 2",
         "<i>voiture</i> <b>rouge</b> x"),
        ("a <b>red <i>car</i></b> x", "une voiture rouge x", "0 2 1 3",
         "une <b><i>voiture</i> rouge</b> x"),
        ("the <b>water</b> x", "l'eau x", "0 0 1 2", "l'<b>eau</b> x"),
        ("a <b>{x}</b> b", "a b Tom", "0 2 1", "a b <b>{x}</b>"),
        ("a <b>{x}</b> b", "a b", "0 2", "a <b>{x}</b> b"),
        ('a <a href="{x}">b</a> c', "c b a", "2 1 0", 'c <a href="{x}">b</a> a'),
        # Without words of its own, an element is at its place all the same.
        ("a <b>red</b> car", "une voiture", "0 2", "une <b></b>voiture"),
        ("a <b>red <i>hot</i></b> car", "une voiture", "0 3", "une <b><i></i></b>voiture"),
        ("a <b></b> car", "une voiture", "0 1", "une <b></b> voiture"),
    ],
)  # fmt: skip
def test_an_element_goes_around_the_words_of_its_content(
    source: str, text: str, links: str, expected: str
) -> None:
    assert translated(source, text, links) == expected


@pytest.mark.parametrize(
    "source, text, links, expected",
    [
        ("one<br/>two", "un deux", "0 1", "un<br/> deux"),
        ("one <img> two", "un deux", "0 1", "un <img> deux"),
        ("one <img>two", "un deux", "0 1", "un <img>deux"),
        ("one <img> two", "deux un", "1 0", "<img> deux un"),
        ("one <img> two", "", "", "<img>"),
        ("a </i>b <b>c", "a b c", "0 1 2", "a </i>b <b>c"),
    ],
)
def test_a_tag_without_content_goes_where_links_cross_least(
    source: str, text: str, links: str, expected: str
) -> None:
    assert translated(source, text, links) == expected


def test_tags_around_a_sentence_are_not_in_it() -> None:
    masked = protect("<p><b>One</b> two.</p>", HTML)
    start = masked.text.index("One")
    assert extent(masked, (start, start + 8)) == (3, 18)
    assert extent(masked, (start, start + 3)) == (6, 9)


def test_an_element_of_two_sentences_is_opened_in_one_and_closed_in_the_other() -> None:
    source = "One <b>two. Three</b> four."
    masked = protect(source, PLAIN)
    final = []
    for sentence, text, links in [
        ((0, 8), "Deux un.", "1 0 2"),
        ((9, 20), "Quatre trois.", "4 3 5"),
    ]:
        final.append(restore(masked, sentence, aligned(masked, text, links)).text)
    assert final == ["<b>Deux un.", "Quatre trois</b>."]


def test_html_is_written_with_entities_and_plain_text_without() -> None:
    source, text = "R&amp;D is {x} &lt; 3", "R&D est Tom < 3"
    assert translated(source, text, "0 1 2 3 4 5 6", HTML) == "R&amp;D est {x} &lt; 3"
    assert translated("R&D is {x}", "R&D est Tom", "0 1 2 3 4", PLAIN) == "R&D est {x}"
    glossary = Protection(html=True, glossary={"R&D": "D&R"})
    assert translated("the R&amp;D", "la R&D", "0 1 2 3", glossary).count("D&amp;R") == 1


def test_spans_of_target_tokens_lead_to_the_final_text() -> None:
    masked = protect("a <b>red</b> {x}", HTML)
    decoded = aligned(masked, "Tom est & rouge", "2 - - 1")
    restored = restore(masked, (0, len(masked.text)), decoded)
    assert restored.text == "{x} est &amp; <b>rouge</b>"
    spans = [restored.map.to_new(*span) for span in decoded.target]
    assert [restored.text[slice(*span)] for span in spans] == ["{x}", "est", "&amp;", "rouge"]
    assert [restored.text[slice(*part.target)] for part in restored.parts] == ["{x}", "<b>", "</b>"]
