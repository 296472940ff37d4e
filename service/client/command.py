"""The `translate` command: texts, or lines of standard input, to lines of standard output.

Both streams are UTF-8 whatever the locale says. A line ends with a line feed, as for other filters,
and is answered with one line.
"""

import argparse
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from service.client.access import PLAINTEXT, access_from
from service.client.remote import DEFAULT_TIMEOUT_SECONDS, Client
from service.client.seeing import Seeing
from service.client.streams import (
    as_utf8,
    is_unicode,
    numbered_chunks,
    stdin_of,
    stdout_of,
    without_end,
)
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
# Flags that say something of files.
_FILE_FLAGS = (
    "format",
    "column",
    "field",
    "into",
    "replace",
    "scores",
    "shard",
    "in_flight",
    "strict",
)


def translate(options: argparse.Namespace) -> None:
    """Runs the command with its parsed arguments.

    Raises ConfigError without the streams it needs, and for flags of files, OSError if the streams
    fail, and what clients raise; InvalidArgument names the line.
    """
    if stray := given(options, _FILE_FLAGS):
        faults = [f"{flag} is about files: give --output" for flag in stray]
        raise ConfigError("translate", faults)
    seeing = Seeing(options.page, options.png)
    stdout = stdout_of("translate")
    stdin = None if options.texts else stdin_of("translate")
    texts = map(as_utf8, options.texts) if stdin is None else map(without_end, stdin)
    style = Style(
        scores=_num_hypotheses(options) is not None,
        attention=options.attention,
        alignment=options.alignment,
        single_line=not options.texts,
        max_width=shutil.get_terminal_size().columns,
        colour=stdout.isatty() and "NO_COLOR" not in os.environ,
    )
    with client_of(options) as client:
        limit = client.list_models().limits.max_contents
        for number, contents in numbered_chunks(texts, stdin, limit):
            with _naming("line" if stdin else "text", number):
                response = client.translate(seeing.asking(request_of(contents, options)))
            seeing.add(contents, response.translations)
            for translation in response.translations:
                print(*translation_lines(translation, style), sep="\n", file=stdout)
            stdout.flush()
    seeing.write()


def given(options: argparse.Namespace, names: Iterable[str]) -> list[str]:
    """Those of the flags that were given, as they are spelt."""
    values = ((name, getattr(options, name)) for name in names)
    # 0 is a value, and equal to False.
    said = (name for name, value in values if value is not None and value is not False)
    return [f"--{name.replace('_', '-')}" for name in said]


def client_of(
    options: argparse.Namespace, timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
) -> "AbstractContextManager[Client | LocalClient]":
    """In this process or for a server, as the flags say. Raises ConfigError and BundleError."""
    if options.models:
        if access_from(options, {}) != PLAINTEXT:
            raise ConfigError("--models", ["needs no server: leave the flags of a connection away"])
        from service.client.local import LocalClient  # with a runtime, which `Client` doesn't need

        return LocalClient(options.models)
    return Client(options.server, timeout_seconds, access_from(options, os.environ))


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


def request_of(contents: Sequence[str], options: argparse.Namespace) -> pb.TranslateRequest:
    """What the flags ask for, of these texts. Raises InvalidArgument."""
    for index, text in enumerate(contents):
        if not is_unicode(text):
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
