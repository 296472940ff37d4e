"""Translations to look at: where the model looked when it chose each word, as a page or a picture.

    command -> Seeing -> views -> page      FILE.html, with everything in it: `assets`
                               -> picture   FILE.png, with matplotlib (the extra `plot`)

`views` reads the protocol's messages; page and picture know only its dataclasses.
"""

from service.client.seeing.files import Seeing
from service.client.seeing.views import SentenceView, sentence_views

__all__ = ["Seeing", "SentenceView", "sentence_views"]
