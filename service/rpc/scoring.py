"""`Score`: message -> pairs and ranking -> the engine -> message."""

import asyncio

from service.catalog import Catalog, held
from service.pb import translation_pb2 as pb
from service.rpc.convert import (
    in_callers_words,
    pairs_from_message,
    ranking_from_message,
    scores_bytes,
)
from service.rpc.limits import RequestLimits
from service.rpc.request_log import note_contents, note_scores
from service.translator import MAX_INLINE_BYTES, pair_bytes


async def score(
    request: pb.ScoreRequest, catalog: Catalog, limits: RequestLimits, remaining: float | None
) -> bytes:
    """The serialised response, within `remaining` seconds. Raises TranslationError."""
    deadline, max_bytes = limits.deadline(remaining), limits.max_message_bytes
    pairs = pairs_from_message(request)
    limits.check_contents([pair.source + pair.target for pair in pairs], "pairs")
    note_contents([pair.source for pair in pairs])
    model = catalog.router.choose(
        request.model,
        request.source_language_code,
        request.target_language_code,
        request.model_version,
    )
    with held([model]):
        translator = model.translator
        ranking = ranking_from_message(request, translator.default_options)
        with in_callers_words():
            scores = await translator.score_async(pairs, ranking, deadline, max_bytes)
        note_scores(translator.manifest, scores)
        if sum(map(pair_bytes, scores)) <= MAX_INLINE_BYTES:
            return scores_bytes(scores, translator.manifest, max_bytes)
        return await asyncio.to_thread(scores_bytes, scores, translator.manifest, max_bytes)
