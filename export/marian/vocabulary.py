"""The pieces of a checkpoint in our order, and SentencePiece files whose ids follow it.

Marian's ids are those of vocab.json; those of the SentencePiece files are others. Here the pieces
of a file are put in a new order, so that its ids are the network's and one tokenisation is enough:

    0 pad   1 unk   2 decoder start   3 EOS   the others as in vocab.json   what only a file has
    └──────────── as everywhere here ───────┘                               └ reads as unk ─────┘

What vocab.json has and a file has not (the other language, `>>fra<<`) is there unused: text never
becomes such a piece, but such a piece becomes text. Single characters of it are read, though:
Marian looks what a file can't spell up in vocab.json. It does so with whole runs, which are UNK
then; here, letters of a script that the source isn't written in are, for the service to copy.
"""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from sentencepiece import SentencePieceProcessor
from sentencepiece import sentencepiece_model_pb2 as format_

from export.marian.errors import MarianError
from export.marian.settings import MarianSettings, read_json
from training.vocabulary import BOS_ID, EOS_ID, PAD_ID, UNK_ID

VOCABULARY, TARGET_VOCABULARY = "vocab.json", "target_vocab.json"
SOURCE_FILE, TARGET_FILE = "source.spm", "target.spm"

_UNK, _EOS = "<unk>", "</s>"
_START = "<decoder start>"
# The output layer is searched in blocks, and a vocabulary of a prime size has none.
_ROW_MULTIPLE = 128

ModelProto: Any = vars(format_)["ModelProto"]  # which protobuf makes when it is imported
_Piece = ModelProto.SentencePiece
_TEXT_TYPES = {_Piece.NORMAL, _Piece.USER_DEFINED, _Piece.BYTE}
_SPECIAL_TYPES = {
    PAD_ID: _Piece.CONTROL,
    UNK_ID: _Piece.UNKNOWN,
    BOS_ID: _Piece.CONTROL,
    EOS_ID: _Piece.CONTROL,
}


@dataclass(frozen=True, slots=True)
class Layout:
    """pieces: by our id. rows: of the checkpoint's table, by our id.

    The first `num_said` of them are the checkpoint's own; the others are not to be said.
    """

    pieces: tuple[str, ...]
    rows: tuple[int, ...]
    num_said: int

    def id_of(self, piece: str) -> int | None:
        return self.pieces.index(piece) if piece in self.pieces[: self.num_said] else None


@dataclass(frozen=True, slots=True)
class Vocabularies:
    """The layouts of both sides, equal if they share a table; and their SentencePiece files."""

    source: Layout
    target: Layout
    source_model: bytes
    target_model: bytes

    @property
    def language_tokens(self) -> list[str]:
        """The tokens of a multilingual model that name its target languages."""
        return [p for p in self.source.pieces if p.startswith(">>") and p.endswith("<<")]


def read_vocabularies(directory: Path, settings: MarianSettings) -> Vocabularies:
    """Raises MarianError for a missing or malformed file, and for ids that don't fit."""
    source_file, target_file = (_read_model(directory, n) for n in (SOURCE_FILE, TARGET_FILE))
    source_ids = _read_ids(directory, VOCABULARY, settings.source_rows)
    target_name = TARGET_VOCABULARY if settings.has_two_vocabularies else VOCABULARY
    target_ids = _read_ids(directory, target_name, settings.target_rows)
    if target_ids[_EOS] != settings.eos:
        fault = f"{target_name}: {_EOS} is {target_ids[_EOS]}, eos_token_id is {settings.eos}"
        raise MarianError(directory, [fault])
    only_source = _only_in(source_file, source_ids, _TEXT_TYPES)
    only_target = _only_in(target_file, target_ids, {_Piece.BYTE})
    if settings.is_shared and not settings.has_two_vocabularies:
        both = list(dict.fromkeys([*only_source, *only_target]))
        source = target = _layout(source_ids, settings.source_rows, settings, both)
    else:
        source = _layout(source_ids, settings.source_rows, settings, only_source)
        target = _layout(target_ids, settings.target_rows, settings, only_target)
    try:
        return Vocabularies(
            source,
            target,
            _reordered(source_file, source, also_read=_loose_characters(source_file, source)),
            _reordered(target_file, target, unknown=""),
        )
    except RuntimeError as error:
        fault = f"{SOURCE_FILE}, {TARGET_FILE} and {target_name} make no tokenizer: {error}"
        raise MarianError(directory, [" ".join(fault.split())]) from error


def _read_model(directory: Path, name: str) -> Any:
    try:
        model = ModelProto.FromString((directory / name).read_bytes())
    except OSError as error:
        raise MarianError(directory, [f"{name} can't be read: {error.strerror}"]) from error
    except DecodeError as error:
        raise MarianError(directory, [f"{name} is no SentencePiece model"]) from error
    if not model.pieces:
        raise MarianError(directory, [f"{name} is no SentencePiece model: it has no pieces"])
    return model


def _read_ids(directory: Path, name: str, num_rows: int) -> dict[str, int]:
    """Pieces to rows of a table, each row at most once."""
    ids, faults = read_json(directory, name), list[str]()
    wrong = [p for p, id in ids.items() if type(id) is not int or not 0 <= id < num_rows]
    if wrong:
        faults.append(
            f"{name}: the id of {wrong[0]!r} is {ids[wrong[0]]!r}, must be an integer from 0 to "
            f"{num_rows - 1}, the table's last row"
        )
    elif len(set(ids.values())) < len(ids):
        faults.append(f"{name}: two pieces have the same id")
    faults += [f"{name} has no {piece!r}" for piece in (_UNK, _EOS) if piece not in ids]
    if "" in ids:
        faults.append(f"{name} has an empty piece")
    if faults:
        raise MarianError(directory, faults)
    return ids


def _only_in(model: Any, ids: Mapping[str, int], types: Iterable[int]) -> list[str]:
    """Pieces that text may become, but that the network has no row for.

    Those of a target are left out, since they are only for reading what it may not say; but all
    bytes are there, or none.
    """
    return [p.piece for p in model.pieces if p.type in types and p.piece not in ids]


def _layout(
    ids: Mapping[str, int], num_rows: int, settings: MarianSettings, extra: Sequence[str]
) -> Layout:
    names = {id: piece for piece, id in ids.items()}
    pad, unk, start, eos = settings.pad, ids[_UNK], settings.decoder_start, ids[_EOS]
    others = [row for row in range(num_rows) if row not in (pad, unk, eos)]
    pieces = [names.get(pad, "<pad>"), _UNK, _START, _EOS]
    pieces += [names.get(row, f"<row {row}>") for row in others]
    num_said = len(pieces)
    size = -(-(num_said + len(extra)) // _ROW_MULTIPLE) * _ROW_MULTIPLE
    pieces += [*extra, *(f"<free {id}>" for id in range(num_said + len(extra), size))]
    # A source never has pad or start; its table may be too small for those of the target.
    rows = [row if row < num_rows else unk for row in (pad, unk, start, eos)] + others
    return Layout(tuple(pieces), (*rows, *[unk] * (size - num_said)), num_said)


def _loose_characters(model: Any, layout: Layout) -> frozenset[str]:
    """What vocab.json can spell though the file can't."""
    known = {piece.piece for piece in model.pieces}
    scripts = {_script(letter) for piece in known for letter in piece if letter.isalpha()}
    single = {piece for piece in layout.pieces[: layout.num_said] if len(piece) == 1} - known
    return frozenset(c for c in single if not c.isalpha() or _script(c) in scripts)


def _script(letter: str) -> str:
    """LATIN, CYRILLIC, …: how the names of a script's letters begin."""
    return unicodedata.name(letter, "").split(" ")[0]


def _reordered(
    model: Any,
    layout: Layout,
    *,
    also_read: frozenset[str] = frozenset(),
    unknown: str | None = None,
) -> bytes:
    """The file with its pieces in the order of the layout; `unknown` is what UNK becomes as text.

    Raises RuntimeError if SentencePiece doesn't take it.
    """
    known = {piece.piece: piece for piece in model.pieces}
    # In BPE, the better score merges first: what is unused must not get in the way.
    worst = min(piece.score for piece in model.pieces) - 1
    new = ModelProto()
    new.CopyFrom(model)
    del new.pieces[:]
    for id, name in enumerate(layout.pieces):
        piece = known.get(name)
        if id not in _SPECIAL_TYPES and piece is not None and piece.type in _TEXT_TYPES:
            new.pieces.append(piece)
            continue
        unused = _Piece.NORMAL if name in also_read else _Piece.UNUSED
        new.pieces.add(piece=name, score=worst, type=_SPECIAL_TYPES.get(id, unused))
    _name_specials(new.trainer_spec, layout, unknown)
    data: bytes = new.SerializeToString()
    SentencePieceProcessor().load_from_serialized_proto(data)
    return data


def _name_specials(spec: Any, layout: Layout, unknown: str | None) -> None:
    spec.vocab_size = len(layout.pieces)
    for kind, id in (("pad", PAD_ID), ("unk", UNK_ID), ("bos", BOS_ID), ("eos", EOS_ID)):
        setattr(spec, f"{kind}_id", id)
        setattr(spec, f"{kind}_piece", layout.pieces[id])
    if unknown is not None:
        spec.unk_surface = unknown
