"""The bearer tokens of a file: one a line, empty lines and `#` comments aside.

Only digests are kept, and a token is compared with all of them in constant time, so that neither a
dump of the memory nor a stopwatch tells one. No message quotes a line.
"""

import hashlib
import hmac
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from service.errors import ConfigError
from service.reading import read_regular

MIN_CHARACTERS = 16
_SUBJECT = "--tokens-file"
_FRESH_SECONDS = 1.0
_LOG = logging.getLogger(__name__)


class Tokens:
    """What a caller may say to be let in; `token in tokens`.

    Raises ConfigError if the file can't be read, or holds no token or a bad one.
    A file that was looked at a second ago is looked at again: a token that was taken out works no
    longer than that. To be used on one thread.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._fault = ""
        self._seen = b""
        self._digests = list[bytes]()
        self._read()
        self._looked_at = clock()

    def __contains__(self, token: str) -> bool:
        if self._clock() - self._looked_at >= _FRESH_SECONDS:
            self._renew()
            self._looked_at = self._clock()
        digest, is_known = _digest(token), False
        for known in self._digests:
            is_known |= hmac.compare_digest(known, digest)
        return is_known

    def _renew(self) -> None:
        """Takes over what is in the file; if that can't be used, the log hears of it once."""
        try:
            if self._read():
                _LOG.info("%s has changed: %d tokens", self._path, len(self._digests))
            self._fault = ""
        except ConfigError as error:
            if self._fault != str(error):
                self._fault = str(error)
                _LOG.error("the tokens stay as they were: %s", error)

    def _read(self) -> bool:
        """Whether the file has changed; if so its tokens are in force. Raises ConfigError."""
        try:
            content = read_regular(self._path)
        except OSError as error:
            raise ConfigError(_SUBJECT, [f"{self._path}: {error.strerror}"]) from error
        seen = hashlib.sha256(content).digest()
        if seen == self._seen:
            return False
        self._digests = [_digest(token) for token in parse_tokens(content, self._path, _SUBJECT)]
        self._seen = seen
        return True


def parse_tokens(content: bytes, path: Path, flag: str) -> list[str]:
    """The tokens in the content of a file that a flag names.

    Raises ConfigError if there is none, and for each line that holds a bad one.
    """
    # Bytes that are no text become a character that no token may have.
    lines = content.decode("ascii", errors="replace").splitlines()
    tokens = {
        number: line.strip()
        for number, line in enumerate(lines, 1)
        if line.strip() and not line.lstrip().startswith("#")
    }
    faults = [
        f"{path}, line {number}: {fault}"
        for number, token in tokens.items()
        for fault in token_faults(token)
    ]
    if not tokens:
        faults.append(f"{path} holds no token; write one a line, or take the flag away")
    if faults:
        raise ConfigError(flag, faults)
    return list(tokens.values())


def token_faults(token: str) -> Iterator[str]:
    """What is wrong with a token, without quoting it."""
    if len(token) < MIN_CHARACTERS:
        yield f"a token of {len(token)} characters; it must have at least {MIN_CHARACTERS}"
    # Others can't be sent as metadata of an rpc, or end it.
    if not all("!" <= character <= "~" for character in token):
        yield "a token has printable ASCII characters only, and no space"


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
