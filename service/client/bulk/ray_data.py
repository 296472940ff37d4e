"""Texts in the batches of Ray Data: what its `map_batches` takes, on any number of machines.

    lines = ray.data.read_text("corpus", drop_empty_lines=False)
    lines = lines.map_batches(
        BatchTranslator,
        fn_constructor_kwargs={"models": "models"},
        batch_size=512,
        compute=ray.data.ActorPoolStrategy(size=8),
    )

Ray makes an object for each of its workers, with the models in that process or, with `server`, a
connection to one. This module doesn't import Ray.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

from service.client.access import PLAINTEXT, Access
from service.client.bulk.calls import TIMEOUT_SECONDS, Caller, TranslationClient
from service.client.bulk.formats import ERROR_FIELD, LineFault
from service.client.bulk.windows import MAX_WINDOW_LINES, in_order
from service.client.remote import Client
from service.config import DEFAULT_ADDRESS
from service.pb import translation_pb2 as pb


class BatchTranslator:
    """Adds a column of translations to batches, and one that says why a text has none.

    models: a directory of bundles, to translate in this process. server: the address of a server,
    and access how to reach it, where there is no directory. column: the texts. into: their
    translations; None for a text that can't be translated, and `error` says why, which is empty
    otherwise. request: what to ask for besides. at_once: requests in flight for one batch.

    Raises ConfigError and BundleError if there is no model, InvalidArgument if the request is wrong
    for any text.
    """

    def __init__(
        self,
        models: str | Path | None = None,
        server: str = DEFAULT_ADDRESS,
        *,
        access: Access = PLAINTEXT,
        column: str = "text",
        into: str = "translation",
        request: pb.TranslateRequest | None = None,
        at_once: int = 8,
    ) -> None:
        self._caller = Caller(_client(models, server, access), request or pb.TranslateRequest())
        self._caller.check()
        self._column = column
        self._into = into
        self._at_once = at_once

    def __call__(self, batch: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        """The batch with two more columns. Raises what is not about a text."""
        texts = [str(text) for text in batch[self._column]]
        some = [texts[i : i + MAX_WINDOW_LINES] for i in range(0, len(texts), MAX_WINDOW_LINES)]
        with closing(in_order(self._caller.outcomes, some, self._at_once)) as results:
            outcomes = [*chain.from_iterable(results)]
        translations = [
            None if isinstance(outcome, LineFault) else outcome.translated_text
            for outcome in outcomes
        ]
        faults = [str(outcome) if isinstance(outcome, LineFault) else "" for outcome in outcomes]
        return {**batch, self._into: translations, ERROR_FIELD: faults}


def _client(models: str | Path | None, server: str, access: Access) -> TranslationClient:
    if models is None:
        return Client(server, TIMEOUT_SECONDS, access)
    from service.client.local import LocalClient  # with a runtime, which `Client` doesn't need

    return LocalClient(Path(models))
