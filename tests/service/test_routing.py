"""Routing: which model answers a request, by name, by languages, or not at all."""

from dataclasses import dataclass

import pytest

from service.catalog import Router
from service.errors import ConfigError, InvalidArgument, UnknownModel


@dataclass(frozen=True)
class Served:
    name: str
    languages: tuple[str, str]
    version: str = "1"


ROUTER = Router(
    [
        Served("b-en-fr", ("en", "fr")),
        Served("a-en-fr", ("en", "fr")),
        Served("en-pt-br", ("en", "pt-BR")),
        Served("en-pt-pt", ("en", "pt-PT")),
        Served("en-pt", ("en", "pt")),
        Served("fr-en", ("fr", "en")),
    ],
    default="b-en-fr",
)


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        (("", "", ""), "b-en-fr"),
        (("a-en-fr", "", ""), "a-en-fr"),
        (("a-en-fr", "EN-us", "fr"), "a-en-fr"),
        (("", "en", "fr"), "b-en-fr"),
        (("", "en-GB", "fr-CA"), "b-en-fr"),
        (("", "fr", ""), "fr-en"),
        (("", "", "en"), "fr-en"),
        (("", "en", "pt-br"), "en-pt-br"),
        (("", "en", "pt"), "en-pt"),
        (("", "en", "pt-AO"), "en-pt"),
        (("", "en-Latn-x-me", "pt-BR-u-co-trad"), "en-pt-br"),
    ],
)
def test_a_request_goes_to_the_named_or_the_closest_model(
    wanted: tuple[str, str, str], chosen: str
) -> None:
    assert ROUTER.choose(*wanted).name == chosen


@pytest.mark.parametrize(
    "wanted", [("c", "", ""), ("", "en", "de"), ("", "fra", "en"), ("", "en-GB", "de-CH")]
)
def test_what_nobody_serves_is_not_found_and_the_answer_lists_what_is(
    wanted: tuple[str, str, str],
) -> None:
    with pytest.raises(UnknownModel, match=r"served: a-en-fr \(en to fr\), b-en-fr"):
        ROUTER.choose(*wanted)


def test_a_model_and_languages_that_it_does_not_translate_contradict_each_other() -> None:
    with pytest.raises(InvalidArgument, match="'fr-en' translates fr to en, not any to de"):
        ROUTER.choose("fr-en", "", "de")


def test_a_choice_between_language_pairs_is_left_to_the_client() -> None:
    with pytest.raises(InvalidArgument, match="en to fr, en to pt, en to pt-BR, en to pt-PT"):
        ROUTER.choose("", "en", "")


def test_without_a_default_an_open_request_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="set one: x"):
        Router([Served("x", ("en", "fr"))]).choose()


@pytest.fixture(scope="module")
def versions() -> Router[Served]:
    """Two versions of `x`, which have learnt to write Canadian French, and another model."""
    return Router(
        [
            Served("x", ("en", "fr"), "1"),
            Served("y", ("en", "fr"), "1"),
            Served("x", ("en", "fr-CA"), "2"),
        ]
    )


def test_the_newest_version_answers_who_asks_for_none(versions: Router[Served]) -> None:
    assert versions.choose("x").version == "2"
    assert versions.choose("", "en", "fr-CA").version == "2"
    assert [(model.name, model.version) for model in versions.models] == [
        ("x", "2"),
        ("x", "1"),
        ("y", "1"),
    ]
    assert versions.names == ["x", "y"]


def test_a_pinned_version_answers_and_its_own_languages_hold(versions: Router[Served]) -> None:
    assert versions.choose("x", "en", "fr-FR", "1").version == "1"
    with pytest.raises(InvalidArgument, match="translates en to fr-CA, not any to fr-FR"):
        versions.choose("x", "", "fr-FR", "2")


def test_a_version_that_is_not_served_is_not_found_and_the_answer_lists_those_that_are(
    versions: Router[Served],
) -> None:
    with pytest.raises(UnknownModel, match="version '3' of model 'x' is not served; served: 2, 1"):
        versions.choose("x", version="3")
    with pytest.raises(UnknownModel, match="model 'z' is not served"):
        versions.choose("z", version="1")


def test_a_version_without_a_name_is_refused(versions: Router[Served]) -> None:
    with pytest.raises(InvalidArgument, match="model_version is '1', but model is empty"):
        versions.choose("", "en", "fr", "1")


def test_versions_of_a_name_must_differ_and_a_default_must_be_served() -> None:
    model = Served("x", ("en", "fr"))
    with pytest.raises(ConfigError, match="two bundles are version 1 of x"):
        Router([model, model])
    with pytest.raises(ConfigError, match="'y' is not served; served: x"):
        Router([model], default="y")


@pytest.mark.parametrize(
    ("languages", "field"),
    [(("english", "fr"), "source"), (("en", "fr_CA"), "target"), (("e" * 5000, ""), "source")],
)
def test_what_is_no_language_tag_is_refused_with_its_field_and_what_is_served(
    languages: tuple[str, str], field: str
) -> None:
    with pytest.raises(
        InvalidArgument, match=f"^{field}_language_code: .*served: a-en-fr"
    ) as caught:
        ROUTER.choose("", *languages)
    assert len(str(caught.value)) < 400


def test_a_served_language_must_be_a_tag() -> None:
    with pytest.raises(ConfigError, match="model x: 'english' is no BCP 47 tag"):
        Router([Served("x", ("english", "fr"))])


def test_an_open_source_language_is_detected_among_those_served_to_the_target() -> None:
    router = Router(
        [
            Served("de-en", ("de", "en")),
            Served("fr-en", ("fr-FR", "en")),
            Served("fr-es", ("fr", "es")),
            Served("pt-en", ("pt-BR", "en")),
            Served("pt-pt-en", ("pt-PT", "en")),
        ],
        default="fr-en",
    )
    assert router.undecided(target="en-GB") == ["fr", "de", "pt"]
    assert [router.choose("", code, "en-GB").name for code in ("fr", "de")] == ["fr-en", "de-en"]


def test_an_undetermined_language_is_detected_even_where_a_default_would_answer() -> None:
    router = Router([Served("x", ("en", "fr")), Served("y", ("fr", "en"))], default="y")
    assert router.undecided("", "und") == router.undecided("", "UND-Latn") == ["fr", "en"]
    assert router.choose("x", "und", "fr").name == "x"


@pytest.mark.parametrize(
    "wanted", [("", "", ""), ("fr-en", "", ""), ("", "fr", ""), ("", "", "fr"), ("", "", "de")]
)
def test_nothing_is_detected_where_nothing_depends_on_it(wanted: tuple[str, str, str]) -> None:
    assert ROUTER.undecided(*wanted) == []
