"""Which model translates which texts of a request: one for all, unless languages are detected."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from service.catalog import Router, ServedModel
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


async def share_out(
    request: pb.TranslateRequest, router: Router[ServedModel], detector: LanguageDetector
) -> list[Share]:
    """Every text in one share. Raises what the router and the detector raise."""
    source, target = request.source_language_code, request.target_language_code
    languages = router.undecided(request.model, source, target)
    if not languages or request.model_version:
        model = router.choose(request.model, source, target, request.model_version)
        count = len(request.contents)
        return [Share(model, range(count), [None] * count)]
    # Its model takes a second to load, once, and a text a fifth of a millisecond.
    detections = await asyncio.to_thread(detector.detect_all, request.contents, languages)
    shares = []
    for language in dict.fromkeys(detection.language for detection in detections):
        indices = [i for i, detection in enumerate(detections) if detection.language == language]
        model = router.choose("", language, target)
        shares.append(Share(model, indices, [detections[i] for i in indices]))
    return shares
