"""The streams of a command that is a filter.

Both are UTF-8 whatever the locale says. A line ends with a line feed, as for other filters.
"""

import os
import signal
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TextIO, TypeVar

from service.errors import ConfigError

# Lines of standard input that are sent together: decoded side by side, and printed together.
LINES_PER_REQUEST = 64

_Item = TypeVar("_Item")


def stdout_of(command: str) -> TextIO:
    """Standard output. Raises ConfigError if it is closed.

    From here on the process ends quietly, like other filters, when the reader of a pipe has gone.
    """
    if sys.stdout is None:
        raise ConfigError(command, ["standard output is closed"])
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    return open(sys.stdout.fileno(), "w", encoding="utf-8", closefd=False)


def stdin_of(command: str) -> TextIO:
    """Standard input; bytes that aren't UTF-8 become what `is_unicode` refuses.

    Raises ConfigError if it is closed.
    """
    if sys.stdin is None:
        raise ConfigError(command, ["standard input is closed; give it lines, or give texts"])
    return open(
        sys.stdin.fileno(),
        encoding="utf-8",
        errors="surrogateescape",
        newline="\n",
        closefd=False,
    )


def without_end(line: str) -> str:
    """A line without what ends it, here or on another system."""
    return line.removesuffix("\n").removesuffix("\r")


def as_utf8(argument: str) -> str:
    """An argument as it was typed, also where the locale is another one."""
    return os.fsencode(argument).decode("utf-8", "surrogateescape")


def is_unicode(text: str) -> bool:
    """Whether a text came from UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def numbered_chunks(
    items: Iterable[_Item], stdin: TextIO | None, limit: int
) -> Iterator[tuple[int, list[_Item]]]:
    """All items in order, as many as are sent together, with the number of the first, from 1.

    stdin: where they come from, if they are its lines: who types them waits for each answer.
    limit: of a request.
    """
    size = 1 if stdin and stdin.isatty() else min(LINES_PER_REQUEST, limit)
    iterator, number = iter(items), 1
    while chunk := list(islice(iterator, size)):
        yield number, chunk
        number += len(chunk)
