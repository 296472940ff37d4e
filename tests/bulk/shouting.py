"""A client without a model: it answers in capitals, and fails as it is told to."""

from collections.abc import Callable, Sequence
from threading import Lock

from service.errors import InvalidArgument
from service.pb import translation_pb2 as pb

REFUSED = "refuse this"


class Shouting:
    """Any thread may call it. before: called with the texts of each request; may raise.

    A text with `REFUSED` in it can't be translated. `requests` are the texts of all requests that
    had any.
    """

    def __init__(
        self,
        before: Callable[[Sequence[str]], None] = lambda texts: None,
        version: str = "1",
        max_contents: int = 64,
    ) -> None:
        self._before = before
        self._version = version
        self._max_contents = max_contents
        self._lock = Lock()
        self.requests = list[list[str]]()

    def translate(self, request: pb.TranslateRequest) -> pb.TranslateResponse:
        texts = [*request.contents]
        assert 0 < len(texts) <= self._max_contents
        if any(texts):
            with self._lock:
                self.requests.append(texts)
            self._before(texts)
        for index, text in enumerate(texts):
            if REFUSED in text:
                raise InvalidArgument(f"contents[{index}] is too much; say something else")
        return pb.TranslateResponse(translations=map(self._translation, texts))

    def list_models(self) -> pb.ListModelsResponse:
        model = pb.Model(name="shouting", version=self._version, source_language_code="en")
        limits = pb.Limits(max_contents=self._max_contents)
        return pb.ListModelsResponse(models=[model], limits=limits)

    def _translation(self, text: str) -> pb.Translation:
        return pb.Translation(
            translated_text=text.upper(), model="shouting", model_version=self._version
        )
