"""The files that `translate` draws: collected while it translates, written at the end."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from service.client.seeing.page import page_of
from service.client.seeing.picture import load_matplotlib, write_picture
from service.client.seeing.views import SentenceView, sentence_views
from service.errors import ConfigError
from service.pb import translation_pb2 as pb


class Seeing:
    """A page and a picture of all that was translated; None for what nobody asked for.

    Raises ConfigError if the library of pictures isn't there.
    """

    def __init__(self, page: Path | None = None, picture: Path | None = None) -> None:
        self._page = page
        self._picture = picture
        self._sentences = list[SentenceView]()
        if picture:
            load_matplotlib()

    @property
    def _is_asked_for(self) -> bool:
        return bool(self._page or self._picture)

    def asking(self, request: pb.TranslateRequest) -> pb.TranslateRequest:
        """The request, which also asks for all that is drawn."""
        if self._is_asked_for:
            request.include_attention = True
            request.include_alignment = True
            request.include_token_scores = True
        return request

    def add(self, contents: Sequence[str], translations: Iterable[pb.Translation]) -> None:
        if self._is_asked_for:
            for content, translation in zip(contents, translations, strict=True):
                self._sentences += sentence_views(content, translation)

    def write(self) -> None:
        """Raises ConfigError, naming the file that can't be written."""
        if self._page:
            try:
                self._page.write_text(page_of(self._sentences), encoding="utf-8")
            except OSError as error:
                raise ConfigError("--page", [f"{self._page}: {error.strerror}"]) from error
        if self._picture:
            write_picture(self._sentences, self._picture)
