"""What callers call the options of the search that have another name on the wire."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from service.errors import InvalidArgument

_NAMES: Final = {
    "attention_heads": "include_attention_heads",
    "suppress_tokens": "forbid_unknown",
}
_NAMED: Final = re.compile(rf"\b({'|'.join(_NAMES)})\b")


@contextmanager
def in_callers_words() -> Iterator[None]:
    """A refusal of what a request asks names the fields that the request has."""
    try:
        yield
    except InvalidArgument as error:
        message = _NAMED.sub(lambda found: _NAMES[found[0]], str(error))
        raise InvalidArgument(message).with_traceback(error.__traceback__) from error.__cause__
