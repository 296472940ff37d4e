"""Which model translates which of the texts of a request."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from service.catalog import Router
from service.catalog.served import Holders
from service.errors import InvalidArgument, UnknownModel
from service.pb import translation_pb2 as pb
from service.rpc.shares import Share, share_out
from service.text.detection import LanguageDetector


@dataclass(frozen=True)
class Served:
    name: str
    languages: tuple[str, str]
    version: str = "1"
    holders: Holders = field(default_factory=Holders)


DETECTOR = LanguageDetector()
ENGLISH = "She told me that she had never seen such a beautiful garden."
FRENCH = "Elle m'a dit qu'elle n'avait jamais vu un aussi beau jardin."


def shares(*contents: str, default: str = "", **fields: str) -> list[Share]:
    pairs = [("en", "de"), ("fr", "de"), ("en", "fr")]
    router: Any = Router([Served("-".join(pair), pair) for pair in pairs], default)
    request = pb.TranslateRequest(contents=contents, **fields)  # type: ignore[arg-type]
    return asyncio.run(share_out(request, router, DETECTOR))


def test_one_model_translates_everything_if_the_language_is_known() -> None:
    (share,) = shares(ENGLISH, FRENCH, source_language_code="en", target_language_code="de")
    assert share.model.name == "en-de"
    assert list(share.indices) == [0, 1] and list(share.detections) == [None, None]


def test_an_open_language_is_detected_for_each_text() -> None:
    english, french = shares(ENGLISH, FRENCH, ENGLISH, target_language_code="de")
    assert (english.model.name, list(english.indices)) == ("en-de", [0, 2])
    assert (french.model.name, list(french.indices)) == ("fr-de", [1])
    (detection,) = french.detections
    assert detection and detection.language == "fr" and 0.9 < detection.confidence <= 1


def test_nothing_is_detected_where_there_is_no_choice() -> None:
    (share,) = shares(FRENCH, target_language_code="fr")
    assert share.model.name == "en-fr" and share.detections[0] is None
    (share,) = shares(FRENCH, default="en-fr")
    assert share.model.name == "en-fr"
    (share,) = shares(FRENCH, model="en-de", model_version="1")
    assert share.model.name == "en-de"


def test_what_cannot_be_routed_is_refused() -> None:
    with pytest.raises(UnknownModel):
        shares(ENGLISH, source_language_code="es", target_language_code="de")
    with pytest.raises(InvalidArgument):
        shares(ENGLISH, source_language_code="en")
    with pytest.raises(InvalidArgument, match="model_version is '1', but model is empty"):
        shares(ENGLISH, target_language_code="de", model_version="1")
