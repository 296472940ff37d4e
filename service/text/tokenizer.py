"""Text on its way to ids and back: SentencePiece with spans.

Owns what a token is and which characters of the text it stands for. Spans are half open, counted
in Unicode code points, ordered, and never leave the string. Normalisation is compiled into the
tokenizer's file, so text is segmented exactly as it was for training; nothing here normalises.
Refuses files that are no SentencePiece model. Strings with lone surrogates can't be UTF-8 and must
be refused before they come here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sentencepiece import SentencePieceProcessor

from service.errors import BundleError
from service.text.layout import LAYOUT_CHARACTERS

SPACE_MARK = "▁"


@dataclass(frozen=True, slots=True)
class Token:
    """One subword and its characters, `text[start:end]`, which don't include the space before it.

    `piece` is for display: without the mark for a space, and `<0xE2>` for one byte of a character
    that isn't in the vocabulary; all bytes of a character have the span of that character. Where
    the text has nothing for a token (the space before the first word, `</s>`), its span is empty.
    """

    id: int
    piece: str
    start: int
    end: int


class Tokenizer:
    """A SentencePiece model. Read-only and safe to share between threads.

    prefix: ids that come before those of every text that isn't blank, as tokens without characters.
    """

    def __init__(self, processor: SentencePieceProcessor, prefix: Sequence[int] = ()) -> None:
        self._processor = processor
        self._prefix = list(prefix)
        self._is_byte = [processor.is_byte(id) for id in range(processor.vocab_size())]
        self.vocabulary_size: int = processor.vocab_size()
        # -1 where the model has no such piece.
        self.pad_id: int = processor.pad_id()
        self.unk_id: int = processor.unk_id()
        self.bos_id: int = processor.bos_id()
        self.eos_id: int = processor.eos_id()
        bytes_ = (id for id in range(self.vocabulary_size) if self._is_byte[id])
        # Of the pieces that spell what no other piece does; they stand for parts of a character.
        self.unknown_ids = frozenset([*bytes_, self.unk_id])

    @classmethod
    def from_bytes(cls, model: bytes, prefix: Sequence[int] = ()) -> "Tokenizer":
        """Load the bytes of a SentencePiece `.model` file.

        Raises:
            BundleError: if they are something else, or have no piece of the prefix.
        """
        processor = SentencePieceProcessor()
        try:
            processor.load_from_serialized_proto(model)
        except (RuntimeError, UnicodeDecodeError) as exc:  # its own message may be no UTF-8
            raise BundleError("tokenizer", ["not a SentencePiece model"]) from exc
        if max(prefix, default=0) >= processor.vocab_size():
            raise BundleError("tokenizer", [f"has no piece {max(prefix)} of the source prefix"])
        return cls(processor, prefix)

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`, without special ids."""
        ids: list[int] = self._processor.encode(text)
        return [*self._prefix, *ids] if ids and self._prefix else ids

    def unknown_characters(self, text: str, ids: Sequence[int]) -> list[int]:
        """Where in `text` the characters are that no piece spells; `ids` are those of `text`."""
        if self.unknown_ids.isdisjoint(ids):
            return []
        tokens = (token for token in self.encode_tokens(text) if token.id in self.unknown_ids)
        return sorted({index for token in tokens for index in range(token.start, token.end)})

    def score(self, id: int) -> float:
        """Return how frequent a piece is in the training text: higher is more."""
        score: float = self._processor.get_score(id)
        return score

    def encode_tokens(self, text: str) -> list[Token]:
        """Return the tokens of `text`: the ids of `encode`, with spans into `text` as it was given.

        What is only a part of a character's normal form (`f`, `i` of `ﬁ`) has its whole span.
        """
        ids: list[int] = self._processor.encode(text)
        pieces: list[str] = self._processor.encode(text, return_type=str)
        normalized, origins = self._processor.normalize(text, with_offsets=True)
        characters = _original_spans(normalized, origins)
        cursor = 0  # in UTF-8 bytes of the normalised text, which the pieces spell out
        tokens = self._prefix_tokens() if ids else []
        for id, piece in zip(ids, pieces, strict=True):
            length = 1 if self._is_byte[id] else len(piece.encode())
            start, end = characters[cursor][0], characters[cursor + length - 1][1]
            tokens.append(Token(id, _display(piece), *_visible(text, start, end)))
            cursor += length
        return tokens

    def _prefix_tokens(self) -> list[Token]:
        return [Token(id, self._processor.id_to_piece(id), 0, 0) for id in self._prefix]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of `ids`; special ids are silent, and what is not UTF-8 is U+FFFD."""
        text: str = self._processor.decode(ids)
        return text

    def decode_tokens(self, ids: Sequence[int]) -> tuple[str, list[Token]]:
        """Return the text of `ids` and one token for each of them, with spans into that text."""
        decoded = self._processor.decode(ids, return_type="offset_mapping")
        text: str = decoded["text"]
        spans: list[tuple[int, int]] = decoded["offsets"]
        is_byte = [self._is_byte[id] for id in decoded["ids"]]
        # Only the last byte of a character has its span: 中 comes as (0, 0), (0, 0), (0, 1).
        for index in range(len(spans) - 2, -1, -1):
            (start, end), (next_start, next_end) = spans[index : index + 2]
            if start == end == next_start and is_byte[index] and is_byte[index + 1]:
                spans[index] = start, next_end
        return text, [
            Token(id, _display(piece), *_visible(text, *span))
            for id, piece, span in zip(decoded["ids"], decoded["pieces"], spans, strict=True)
        ]


def _display(piece: str) -> str:
    return piece.replace(SPACE_MARK, "")


def _visible(text: str, start: int, end: int) -> tuple[int, int]:
    """Shrink a span at both ends to what can be seen, if anything can."""
    part = text[start:end]
    if not part.strip(LAYOUT_CHARACTERS):
        return start, end
    return end - len(part.lstrip(LAYOUT_CHARACTERS)), start + len(part.rstrip(LAYOUT_CHARACTERS))


def _original_spans(normalized: str, origins: Sequence[int]) -> list[tuple[int, int]]:
    """Return the span in the original text of every UTF-8 byte of the normalised one.

    `origins` holds the start of each normalised character, then the end of the text. Those that
    share a start were one character: `ﬁn` comes as `▁fin` and [0, 0, 0, 1, 2], so that f and i are
    (0, 1), n is (1, 2). The mark that was added before the first word was nothing: it is (0, 0).
    """
    spans = []
    end = origins[-1]
    for index in range(len(normalized) - 1, -1, -1):
        start = origins[index]
        if origins[index + 1] > start:
            end = origins[index + 1]
        added = index == 0 and normalized[0] == SPACE_MARK and start == origins[1]
        span = (start, start) if added else (start, end)
        spans += [span] * len(normalized[index].encode())
    return spans[::-1]
