"""The `translate` command: texts, or lines of standard input, to lines of standard output.

Both streams are UTF-8 whatever the locale says. A line ends with a line feed, as for other filters,
and is answered with one line.
"""

import argparse
import os
import re
import shutil
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import islice
from typing import TYPE_CHECKING, TextIO

from service.client.remote import Client
from service.client.terminal import Style, translation_lines
from service.errors import ConfigError, InvalidArgument
from service.pb import translation_pb2 as pb

if TYPE_CHECKING:
    from service.client.local import LocalClient

# Lines of standard input that are sent together: decoded side by side, and printed together.
LINES_PER_REQUEST = 64


def translate(options: argparse.Namespace) -> None:
    """Runs the command with its parsed arguments.

    Raises ConfigError without the streams it needs, OSError if they fail, and what the client does.
    """
    # Like other filters: end quietly when the reader of a pipe has gone.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    stdin, stdout = _streams(needs_input=not options.texts)
    style = Style(
        scores=options.n_best is not None,
        attention=options.attention,
        single_line=not options.texts,
        max_width=shutil.get_terminal_size().columns,
        colour=stdout.isatty() and "NO_COLOR" not in os.environ,
    )
    with _client(options) as client:
        size = 1
        if stdin is None or not stdin.isatty():
            size = min(LINES_PER_REQUEST, client.list_models().limits.max_contents)
        texts = map(_without_end, stdin) if stdin else map(_as_utf8, options.texts)
        kind, number = "line" if stdin else "text", 1
        for contents in _chunks(texts, size):
            with _numbered(kind, number):
                response = client.translate(_request(contents, options))
            for translation in response.translations:
                _write(stdout, translation_lines(translation, style))
            number += len(contents)


def _streams(needs_input: bool) -> tuple[TextIO | None, TextIO]:
    """Standard input, if it is needed, and output; bytes that aren't UTF-8 become surrogates."""
    if sys.stdout is None:
        raise ConfigError("translate", ["standard output is closed"])
    if needs_input and sys.stdin is None:
        raise ConfigError("translate", ["standard input is closed; give it lines, or texts"])
    stdout = open(sys.stdout.fileno(), "w", encoding="utf-8", closefd=False)
    if not needs_input:
        return None, stdout
    encoding = {"encoding": "utf-8", "errors": "surrogateescape", "newline": "\n"}
    return open(sys.stdin.fileno(), closefd=False, **encoding), stdout
