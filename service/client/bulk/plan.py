"""What a command line asks for, as one plan for each file."""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from google.protobuf.json_format import MessageToDict

from service.client.bulk.codecs import is_compressed
from service.client.bulk.formats import Format, JsonFormat, TextFormat, TsvFormat
from service.client.bulk.shard import Shard
from service.client.command import given
from service.errors import ConfigError
from service.pb import translation_pb2 as pb

_FORMATS = {".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
# Flags that only one format has.
_OF_TSV = ("column",)
_DETAILS = ("scores", "attention", "alignment", "n_best", "alternatives")
_OF_JSONL = ("field", "into", *_DETAILS)
# Those for people at a terminal.
_TO_LOOK_AT = ("page", "png")
DEFAULT_AT_ONCE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How one file is translated.

    request: all of it but the texts. at_once: requests in flight. strict: whether a line that can't
    be translated ends the run.
    """

    source: Path
    output: Path
    format: Format
    request: pb.TranslateRequest
    shard: Shard = Shard()
    at_once: int = DEFAULT_AT_ONCE
    strict: bool = False

    def settings(self, file_size: int) -> Mapping[str, object]:
        """All that decides what comes out, as plain values."""
        request = MessageToDict(self.request, preserving_proto_field_name=True)
        size = {"input size": file_size, "shard": str(self.shard)}
        return {**size, **self.format.settings, **request}


def plans_from(options: argparse.Namespace, request: pb.TranslateRequest) -> list[Plan]:
    """One plan for each file that is named. Raises ConfigError with every contradiction."""
    sources = [Path(text) for text in options.texts]
    shard, faults = _shard(options.shard)
    faults += _faults(options, sources)
    if faults:
        raise ConfigError("translate", faults)
    folder = _folder(options.output, len(sources))
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    return [
        Plan(
            source=source,
            output=folder / shard.named(source.name) if folder else Path(options.output),
            format=_format(options, _format_name(options, source)),
            request=request,
            shard=shard,
            at_once=options.in_flight or DEFAULT_AT_ONCE,
            strict=options.strict,
        )
        for source in sources
    ]


def _shard(text: str | None) -> tuple[Shard, list[str]]:
    try:
        return Shard() if text is None else Shard.parse(text), []
    except ValueError as error:
        return Shard(), [f"--shard {error}"]


def _faults(options: argparse.Namespace, sources: list[Path]) -> Iterator[str]:
    names = [source.name for source in sources]
    if not sources:
        yield "--output is given without a FILE"
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"two files have the name {name}, and so would their outputs"
    for source in sources:
        if not source.is_file():
            yield f"{source} is no file; with --output, arguments are names of files"
    for flag, number in (("--in-flight", options.in_flight), ("--column", options.column)):
        if number is not None and number < 1:
            yield f"{flag} {number} is less than 1"
    if options.replace and options.into is not None:
        yield "--replace and --into contradict each other"
    yield from _strangers(options, {_format_name(options, source) for source in sources})


def _strangers(options: argparse.Namespace, formats: set[str]) -> Iterator[str]:
    """Flags for a format that no file has."""
    for format, flags in (("tsv", _OF_TSV), ("jsonl", _OF_JSONL)):
        if format not in formats:
            yield from (f"{flag} needs the format {format}" for flag in given(options, flags))
    yield from (f"{flag} shows texts, not files" for flag in given(options, _TO_LOOK_AT))
    if options.replace and formats == {"text"}:
        yield "--replace needs the format tsv or jsonl"


def _folder(output: str, num_sources: int) -> Path | None:
    """The folder that outputs lie in; None if `output` names the only one."""
    is_folder = num_sources > 1 or output.endswith("/") or Path(output).is_dir()
    return Path(output) if is_folder else None


def _format_name(options: argparse.Namespace, source: Path) -> str:
    name = Path(source.stem) if is_compressed(source) else source
    asked: str | None = options.format
    return asked or _FORMATS.get(name.suffix.lower(), "text")


def _format(options: argparse.Namespace, name: str) -> Format:
    if name == "tsv":
        return TsvFormat(options.column or 1, options.replace)
    if name == "jsonl":
        field = options.field or "text"
        into = field if options.replace else options.into or "translation"
        return JsonFormat(field, into, details=bool(given(options, _DETAILS)))
    return TextFormat()
