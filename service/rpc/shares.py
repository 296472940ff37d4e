"""Which model translates which texts of a request: one for all, unless languages are detected."""

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from service.catalog import Catalog, Router, ServedModel, held
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


async def leased(
    request: pb.TranslateRequest, catalog: Catalog, detector: LanguageDetector, leases: ExitStack
) -> list[Share]:
    """`share_out` among the models that serve now, each held until the leases end."""
    router = catalog.router
    with held(router.models):  # detection takes a while, in which each may be replaced
        shares = await share_out(request, router, detector)
        leases.enter_context(held(share.model for share in shares))
    return shares


def choices(
    request: pb.TranslateRequest, router: Router[ServedModel]
) -> list[tuple[str, str, str, str]]:
    """What `Router.choose` may be asked for a text: one thing, unless its language is detected."""
    target = request.target_language_code
    return [("", language, target, "") for language in _undecided(request, router)] or [
        (request.model, request.source_language_code, target, request.model_version)
    ]


async def share_out(
    request: pb.TranslateRequest, router: Router[ServedModel], detector: LanguageDetector
) -> list[Share]:
    """Every text in one share. Raises what the router and the detector raise."""
    if not (languages := _undecided(request, router)):
        [choice] = choices(request, router)
        count = len(request.contents)
        return [Share(router.choose(*choice), range(count), [None] * count)]
    # Its model takes a second to load, once, and a text a fifth of a millisecond.
    detections = await asyncio.to_thread(detector.detect_all, request.contents, languages)
    shares = []
    for language in dict.fromkeys(detection.language for detection in detections):
        indices = [i for i, detection in enumerate(detections) if detection.language == language]
        model = router.choose("", language, request.target_language_code)
        shares.append(Share(model, indices, [detections[i] for i in indices]))
    return shares


def _undecided(request: pb.TranslateRequest, router: Router[ServedModel]) -> list[str]:
    """The languages that a text may be in, if that is to be detected."""
    if request.model_version:
        return []
    languages = request.source_language_code, request.target_language_code
    return router.undecided(request.model, *languages)
