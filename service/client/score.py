"""The `score` command: how probable a model finds translations that are given to it.

A pair is answered with its log-probability, its score and its target, between tabs: those of one
source can be sorted. Below that, on request, stand the tokens and where the model looked.
"""

import argparse
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from service.client.command import client_of
from service.client.streams import (
    as_utf8,
    is_unicode,
    numbered_chunks,
    stdin_of,
    stdout_of,
    without_end,
)
from service.client.terminal import attention_lines, printable
from service.errors import ConfigError, InvalidArgument
from service.pb import translation_pb2 as pb

_END_OF_SENTENCE = "</s>"


@dataclass(frozen=True, slots=True)
class _Style:
    """What to show below a pair; the matrix is `max_width` terminal columns wide."""

    tokens: bool
    attention: bool
    max_width: int
    colour: bool


def score(options: argparse.Namespace) -> None:
    """Runs the command with its parsed arguments.

    Raises ConfigError without the streams it needs, and for half a pair, OSError if the streams
    fail, and what clients raise; InvalidArgument names the line.
    """
    if (options.source is None) != (options.target is None):
        raise ConfigError("score", ["--source and --target belong together"])
    stdout = stdout_of("score")
    stdin = stdin_of("score") if options.source is None else None
    pairs = _given(options) if stdin is None else map(_pair, map(without_end, stdin))
    style = _Style(
        tokens=options.tokens or stdin is None,
        attention=options.attention,
        max_width=shutil.get_terminal_size().columns,
        colour=stdout.isatty() and "NO_COLOR" not in os.environ,
    )
    with client_of(options) as client:
        limit = client.list_models().limits.max_contents
        for number, chunk in numbered_chunks(pairs, stdin, limit):
            with _naming("line" if stdin else "pair", number):
                response = client.score(_request(chunk, options))
            for (_, target), found in zip(chunk, response.scores, strict=True):
                print(*_score_lines(target, found, style), sep="\n", file=stdout)
            stdout.flush()


def _score_lines(target: str, found: pb.PairScore, style: _Style) -> Iterator[str]:
    yield f"{found.log_prob:.4f}\t{found.score:.4f}\t{target}"
    if style.tokens:
        tokens = [*(token.text for token in found.token_scores.tokens), _END_OF_SENTENCE]
        for token, log_prob in zip(tokens, found.token_scores.log_probs, strict=True):
            yield f"{log_prob:9.4f}  {printable(token)}"
    if style.attention:
        yield ""
        yield from attention_lines(found.attention, style.max_width, style.colour)


def _given(options: argparse.Namespace) -> Iterator[Sequence[str]]:
    for target in options.target:
        yield as_utf8(options.source), as_utf8(target)


def _pair(line: str) -> Sequence[str]:
    return line.split("\t")


@contextmanager
def _naming(kind: str, first: int) -> Iterator[None]:
    """Names pairs as the caller counts them: `line 70` for the sixth after line 64."""
    try:
        yield
    except InvalidArgument as error:
        message = re.sub(
            r"pairs\[(\d+)\](?:\.(\w+))?",
            lambda found: f"{found[2] or ''} of {kind} {first + int(found[1])}".removeprefix(
                " of "
            ),
            str(error),
        )
        raise InvalidArgument(message) from None


def _request(pairs: Sequence[Sequence[str]], options: argparse.Namespace) -> pb.ScoreRequest:
    """What the flags ask for, of these pairs. Raises InvalidArgument."""
    for index, texts in enumerate(pairs):
        if len(texts) != 2:
            raise InvalidArgument(f"pairs[{index}] has {len(texts)} columns, not source<TAB>target")
        if not all(map(is_unicode, texts)):
            raise InvalidArgument(f"pairs[{index}] is not UTF-8; convert it first, with iconv")
    try:
        return pb.ScoreRequest(
            pairs=[pb.SentencePair(source=source, target=target) for source, target in pairs],
            model=options.model,
            source_language_code=options.source_language,
            target_language_code=options.target_language,
            include_attention=options.attention,
            length_penalty=options.length_penalty,
            coverage_penalty=options.coverage_penalty,
        )
    except UnicodeError:
        raise InvalidArgument("an argument is not UTF-8; convert it first, with iconv") from None
