"""Which model translates which texts of a request: one for all, unless languages are detected."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from service.catalog import Router, ServedModel, held
from service.pb import translation_pb2 as pb
from service.text.detection import Detection, LanguageDetector


@dataclass(frozen=True, slots=True)
class Share:
    """The texts of a request that one model translates, `contents[i]` for `i` in `indices`.

    detections: of each of them; None where the language was known.
    """

    model: ServedModel
    indices: Sequence[int]
    detections: Sequence[Detection | None]


def choices(
    request: pb.TranslateRequest, router: Router[ServedModel]
) -> list[tuple[str, str, str, str]]:
    """What `Router.choose` may be asked for a text: one thing, unless its language is detected."""
    target = request.target_language_code
    return [("", language, target, "") for language in _undecided(request, router)] or [
        _asked(request)
    ]


async def share_out(
    request: pb.TranslateRequest, router: Router[ServedModel], detector: LanguageDetector
) -> list[Share]:
    """Every text in one share. Raises what the router and the detector raise.

    The models may be replaced at the next turn of the event loop: who needs them, holds them.
    """
    if not (languages := _undecided(request, router)):
        count = len(request.contents)
        return [Share(router.choose(*_asked(request)), range(count), [None] * count)]
    with held(router.models):
        # Its model takes a second to load, once, and a text a fifth of a millisecond.
        detections = await asyncio.to_thread(detector.detect_all, request.contents, languages)
    shares = []
    for language in dict.fromkeys(detection.language for detection in detections):
        indices = [i for i, detection in enumerate(detections) if detection.language == language]
        model = router.choose("", language, request.target_language_code)
        shares.append(Share(model, indices, [detections[i] for i in indices]))
    return shares


def _asked(request: pb.TranslateRequest) -> tuple[str, str, str, str]:
    """The arguments of `Router.choose`, as they are in the request."""
    languages = request.source_language_code, request.target_language_code
    return request.model, *languages, request.model_version


def _undecided(request: pb.TranslateRequest, router: Router[ServedModel]) -> list[str]:
    """The languages that a text may be in, if that is to be detected."""
    if request.model_version:
        return []
    languages = request.source_language_code, request.target_language_code
    return router.undecided(request.model, *languages)
