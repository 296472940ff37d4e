"""Language tags: what is one, how it is written, and which served one answers to it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.text.languages import LanguageTag

# Of RFC 5646, appendix A, and of RFC 4647.
TAGS = [
    *(
        "en",
        "de",
        "tlh",
        "en-US",
        "es-419",
        "zh-Hans-CN",
        "sr-Cyrl",
        "sl-rozaj-biske",
        "de-CH-1901",
    ),
    *("sl-IT-nedis", "hy-Latn-IT-arevela", "zh-cmn-Hans-CN", "zh-yue-HK", "az-Arab-x-AZE-derbend"),
    *(
        "en-US-u-islamcal",
        "zh-CN-a-myext-x-private",
        "en-a-myext-b-another",
        "de-1996",
        "de-CH-x-phonebk",
    ),
]
CANONICAL = {"en", "de", "en-US", "zh-Hans-CN", "es-419", "sl-rozaj-biske", "de-CH-1901"}


def closeness(wanted: str, served: str) -> int | None:
    return LanguageTag.parse(wanted).closeness(LanguageTag.parse(served))


@pytest.mark.parametrize("text", TAGS)
def test_case_does_not_matter_and_the_answer_is_canonical(text: str) -> None:
    tag = LanguageTag.parse(text)
    assert LanguageTag.parse(text.upper()) == LanguageTag.parse(text.lower()) == tag
    assert str(tag).lower() == text.lower()
    assert LanguageTag.parse(str(tag)) == tag
    assert tag.language == text.partition("-")[0]


@pytest.mark.parametrize("text", CANONICAL)
def test_a_canonical_tag_stays_as_it_is(text: str) -> None:
    assert str(LanguageTag.parse(text.swapcase())) == text


def test_nothing_behind_a_single_letter_has_capitals() -> None:
    assert str(LanguageTag.parse("SR-LATN-RS-A-QQ-ABCD-X-US")) == "sr-Latn-RS-a-qq-abcd-x-us"


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "e",
            "english",
            "en_US",
            "en-",
            "-en",
            "en--US",
            " en",
            "en\n",
            "en-US-Latn",
            "419-de",
        ),
        *("en-a", "en-x", "x-private", "i-klingon", "*", "en-*", "е", "ſl", "en-\u212aa", "de-é"),
    ],
)
def test_what_is_no_tag_is_refused_and_named(text: str) -> None:
    with pytest.raises(ValueError, match="is no BCP 47 tag such as 'en' or 'pt-BR'") as caught:
        LanguageTag.parse(text)
    assert repr(text) in str(caught.value)


@given(st.text(max_size=60))
def test_any_text_is_a_tag_or_refused_with_a_short_message(text: str) -> None:
    try:
        assert str(LanguageTag.parse(text)).lower() == text.lower()
    except ValueError as error:
        assert len(str(error)) < 500


def test_looking_up_a_tag_leaves_off_one_subtag_after_another() -> None:
    served = ["zh-Hant-TW", "zh-Hant", "zh", "zh-Hans", "zh-TW", "en"]
    found = [closeness("zh-hant-tw-u-co-stroke", tag) for tag in served]
    assert found == [3, 2, 1, None, None, None]


def test_what_is_served_may_say_more_but_fits_less_well() -> None:
    assert [closeness("pt", tag) for tag in ("pt", "pt-BR", "pt-PT", "pl")] == [1, 0, 0, None]
    assert closeness("zh-Hant", "zh-Hans") is closeness("en-GB", "en-US") is None
