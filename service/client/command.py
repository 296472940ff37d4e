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
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from typing import TYPE_CHECKING, TextIO

from service.client.access import PLAINTEXT, access_from
from service.client.remote import Client
from service.client.terminal import Style, translation_lines
from service.errors import ConfigError, InvalidArgument
from service.pb import translation_pb2 as pb

if TYPE_CHECKING:
    from service.client.local import LocalClient

# Flags that have the name of an option of the search.
_SEARCH_FLAGS = (
    "prefix",
    "length_penalty",
    "max_length",
    "repetition_penalty",
    "no_repeat_ngram_size",
    "sampling_temperature",
    "sampling_top_k",
    "sampling_top_p",
    "sampling_seed",
)
# Lines of standard input that are sent together: decoded side by side, and printed together.
LINES_PER_REQUEST = 64


def translate(options: argparse.Namespace) -> None:
    """Runs the command with its parsed arguments.

    Raises ConfigError without the streams it needs, OSError if they fail, and what clients raise;
    InvalidArgument names the line.
    """
    # Like other filters: end quietly when the reader of a pipe has gone.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    stdout = _stdout()
    stdin = None if options.texts else _stdin()
    texts = map(_as_utf8, options.texts) if stdin is None else map(_without_end, stdin)
    style = Style(
        scores=_num_hypotheses(options) is not None,
        attention=options.attention,
        alignment=options.alignment,
        single_line=not options.texts,
        max_width=shutil.get_terminal_size().columns,
        colour=stdout.isatty() and "NO_COLOR" not in os.environ,
    )
    with _client(options) as client:
        limit = client.list_models().limits.max_contents
        size = 1 if stdin and stdin.isatty() else min(LINES_PER_REQUEST, limit)
        number = 1
        for contents in _chunks(texts, size):
            with _naming("line" if stdin else "text", number):
                response = client.translate(_request(contents, options))
            for translation in response.translations:
                print(*translation_lines(translation, style), sep="\n", file=stdout)
            stdout.flush()
            number += len(contents)


def _stdout() -> TextIO:
    if sys.stdout is None:
        raise ConfigError("translate", ["standard output is closed"])
    return open(sys.stdout.fileno(), "w", encoding="utf-8", closefd=False)


def _stdin() -> TextIO:
    """Standard input as UTF-8; bytes that aren't become what `_request` refuses."""
    if sys.stdin is None:
        raise ConfigError("translate", ["standard input is closed; give it lines, or give texts"])
    return open(
        sys.stdin.fileno(),
        encoding="utf-8",
        errors="surrogateescape",
        newline="\n",
        closefd=False,
    )


def _without_end(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")


def _as_utf8(argument: str) -> str:
    """An argument as it was typed, also where the locale is another one."""
    return os.fsencode(argument).decode("utf-8", "surrogateescape")


def _chunks(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    iterator = iter(lines)
    while chunk := list(islice(iterator, size)):
        yield chunk


def _client(options: argparse.Namespace) -> "AbstractContextManager[Client | LocalClient]":
    if options.models:
        if access_from(options, {}) != PLAINTEXT:
            raise ConfigError("--models", ["needs no server: leave the flags of a connection away"])
        from service.client.local import LocalClient  # with a runtime, which `Client` doesn't need

        return LocalClient(options.models)
    return Client(options.server, access=access_from(options, os.environ))


@contextmanager
def _naming(kind: str, first: int) -> Iterator[None]:
    """Names lines as the caller counts them: `line 70` for the sixth text after line 64."""
    try:
        yield
    except InvalidArgument as error:
        message = re.sub(
            r"contents\[(\d+)\]", lambda found: f"{kind} {first + int(found[1])}", str(error)
        )
        raise InvalidArgument(message) from None


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _request(contents: Sequence[str], options: argparse.Namespace) -> pb.TranslateRequest:
    for index, text in enumerate(contents):
        if not _is_unicode(text):
            raise InvalidArgument(f"contents[{index}] is not UTF-8; convert it first, with iconv")
    try:
        return pb.TranslateRequest(
            contents=contents,
            model=options.model,
            source_language_code=options.source,
            target_language_code=options.target,
            options=_search(options),
            include_attention=options.attention,
            include_alignment=options.alignment,
            mime_type="text/html" if options.html else "",
            text_options=_text_options(options),
        )
    except UnicodeError:
        raise InvalidArgument("an argument is not UTF-8; convert it first, with iconv") from None
    except ValueError as error:  # an integer of more than 32 bits
        raise InvalidArgument(str(error)) from None


def _num_hypotheses(options: argparse.Namespace) -> int | None:
    """How many translations to print; None: the best one, without its score."""
    number: int | None = options.n_best if options.alternatives is None else options.alternatives
    return number


def _search(options: argparse.Namespace) -> pb.DecodingOptions:
    number = _num_hypotheses(options)
    asked = {name: getattr(options, name) for name in _SEARCH_FLAGS}
    return pb.DecodingOptions(
        # N translations need N beams; whoever asks for them without a beam size means that.
        beam_size=options.beam_size if options.beam_size is not None else number,
        num_hypotheses=number,
        return_alternatives=None if options.alternatives is None else True,
        suppress_sequences=options.suppress,
        **asked,
    )


def _text_options(options: argparse.Namespace) -> pb.TextOptions:
    return pb.TextOptions(
        split_sentences=not options.whole_lines,
        long_sentences=pb.LONG_SENTENCES_REFUSE if options.refuse_long else None,
        no_break_spaces=options.no_break_spaces,
        protect=[f"PROTECTED_KIND_{kind.upper()}" for kind in options.protect],
        glossary=[
            pb.GlossaryTerm(source=source, target=target) for source, _, target in options.term
        ],
    )
