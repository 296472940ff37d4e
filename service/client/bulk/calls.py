"""Texts through a client, each with its translation or the reason why there is none.

    UNAVAILABLE, RESOURCE_EXHAUSTED   the same texts again after a pause, some times
    INVALID_ARGUMENT of a text        the others again, without it
    any other failure                 each half of the texts by itself, down to the one it is about

What is no fault of the text, DEADLINE_EXCEEDED and INTERNAL, may pass: another run tries it again.

Whether the request is right for any text at all is to be asked before: see `Caller.check`.
"""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Protocol, TypeAlias

from service.client.bulk.formats import LineFault
from service.errors import (
    Cancelled,
    ConfigError,
    DeadlineExceeded,
    InvalidArgument,
    QueueFull,
    TranslationError,
    Unauthenticated,
    Unavailable,
    UnknownModel,
    WorkerFailed,
)
from service.pb import translation_pb2 as pb

Outcome: TypeAlias = pb.Translation | LineFault
# Of one request. A server that is busy with others answers late; one that can't says so at once.
TIMEOUT_SECONDS = 600.0
_TEXT = re.compile(r"contents\[(\d+)\]:? ?")
# What has nothing to do with any text.
_FATAL = (Cancelled, ConfigError, Unauthenticated, Unavailable, UnknownModel, QueueFull)
# What happens to a text once, and not the next time.
_PASSING = (DeadlineExceeded, WorkerFailed)


class TranslationClient(Protocol):
    """What `Client` and `LocalClient` have in common; any thread may call them."""

    def translate(self, request: pb.TranslateRequest) -> pb.TranslateResponse: ...

    def list_models(self) -> pb.ListModelsResponse: ...


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a request that the server had no room for is sent again, and after how long.

    The pause before retry k is up to first_seconds * 2 ^ k, at most max_seconds, by chance: those
    who were refused together don't come back together. Where the server says how long to wait, it
    is at least that.
    """

    count: int = 10
    first_seconds: float = 0.5
    max_seconds: float = 30.0

    def pauses(self) -> Iterator[float]:
        for k in range(self.count):
            most = min(self.max_seconds, self.first_seconds * 2**k)
            yield most * random.uniform(0.5, 1)


USUAL_RETRIES = Retries()


class Caller:
    """Translates texts with the fields of `request`. Any thread may call it.

    stop: once it is set, what fails isn't tried again.
    """

    def __init__(
        self,
        client: TranslationClient,
        request: pb.TranslateRequest,
        retries: Retries = USUAL_RETRIES,
        stop: Event | None = None,
    ) -> None:
        self._client = client
        self._request = request
        self._retries = retries
        self._stop = stop or Event()

    def check(self) -> pb.Translation:
        """How nothing is translated. Raises what is wrong with the request, whatever the text."""
        return self._client.translate(self._requesting([""])).translations[0]

    def outcomes(self, texts: Sequence[str]) -> list[Outcome]:
        """One for each text, in order.

        Raises what is not about them: Unavailable and QueueFull after the last retry, UnknownModel
        and the like.
        """
        if not texts:
            return []
        try:
            return [*self._answer(texts).translations]
        except _FATAL:
            raise
        except InvalidArgument as error:
            found = _TEXT.search(str(error))
            if found and int(found[1]) < len(texts):  # else the server speaks of something else
                return self._without(texts, int(found[1]), _fault(error))
            return self._halves(texts, error)
        except TranslationError as error:
            return self._halves(texts, error)

    def _without(self, texts: Sequence[str], index: int, fault: LineFault) -> list[Outcome]:
        others = self.outcomes([*texts[:index], *texts[index + 1 :]])
        return [*others[:index], fault, *others[index:]]

    def _halves(self, texts: Sequence[str], error: TranslationError) -> list[Outcome]:
        if len(texts) == 1:
            return [_fault(error)]
        middle = len(texts) // 2
        return self.outcomes(texts[:middle]) + self.outcomes(texts[middle:])

    def _answer(self, texts: Sequence[str]) -> pb.TranslateResponse:
        request = self._requesting(texts)
        for pause in self._retries.pauses():
            try:
                return self._client.translate(request)
            except (Unavailable, QueueFull) as error:
                asked = error.retry_after_seconds if isinstance(error, QueueFull) else 0.0
                if self._stop.wait(max(pause, asked)):
                    raise
        return self._client.translate(request)

    def _requesting(self, texts: Sequence[str]) -> pb.TranslateRequest:
        request = pb.TranslateRequest(contents=texts)
        request.MergeFrom(self._request)
        return request


def _fault(error: TranslationError) -> LineFault:
    """Why a text has no translation, without its place in a request that nobody knows of."""
    return LineFault(_TEXT.sub("", str(error)), may_pass=isinstance(error, _PASSING))
