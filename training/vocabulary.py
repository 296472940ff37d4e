"""The subword vocabulary: one SentencePiece BPE model shared by both languages.

Owns how text is normalised, what the pieces are and which ids are special. The normalisation rules
are compiled into the model file, so whoever loads it segments exactly as training did: everybody,
training included, does so with `service.text.Tokenizer`. Refuses a model whose special ids are not
the ones below.
"""

import io
import itertools
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import sentencepiece

from service.text import Tokenizer

PAD_ID, UNK_ID, BOS_ID, EOS_ID = 0, 1, 2, 3

_STRAIGHT_QUOTES = dict.fromkeys("’‘ʼ‛", "'") | dict.fromkeys("“”„‟", '"')
# Soft hyphen, zero-width spaces and joiners, bidirectional controls, byte-order mark. U+200D
# stays: emoji sequences are held together by it.
_INVISIBLE = (
    [0x00AD, 0x061C, 0x180E, 0x200B, 0x200C, 0x200E, 0x200F, 0xFEFF]
    + [*range(0x202A, 0x202F), *range(0x2060, 0x2065), *range(0x2066, 0x2070)]
    + [code for code in range(0x01, 0xA0) if unicodedata.category(chr(code)) == "Cc"]
)
# Too rare in some corpora to pass the coverage, and yet ordinary text.
_REQUIRED_CHARACTERS = "àâæçéèêëîïôœöùûüÿÀÂÆÇÉÈÊËÎÏÔŒÖÙÛÜŸáíñóÁÉÍÑÓ«»€$£%&@#°–—"
_LINE_BREAKS_AND_TABS = "\t\n\v\f\r\x85\u2028\u2029"


def train_vocabulary(sentences: Iterable[str], size: int, character_coverage: float) -> bytes:
    """Train the shared BPE model and return the bytes of its file.

    Every twentieth sentence is also seen in capitals and every twentieth in lower case, so that
    neither falls apart into letters. Characters beyond `character_coverage` (a share of the
    running text) become UTF-8 byte pieces.

    Raises:
        ValueError: if the text is too small for `size` pieces, or `size` for its characters.
    """
    model = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder, _named(size):
        rules = Path(folder, "rules.tsv")
        rules.write_text(normalization_rules(), encoding="utf-8")
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_with_other_cases(sentences),
            model_writer=model,
            model_type="bpe",
            vocab_size=size,
            character_coverage=character_coverage,
            required_chars=_REQUIRED_CHARACTERS,
            byte_fallback=True,
            split_digits=True,
            normalization_rule_tsv=str(rules),
            remove_extra_whitespaces=True,
            add_dummy_prefix=True,
            pad_id=PAD_ID,
            unk_id=UNK_ID,
            bos_id=BOS_ID,
            eos_id=EOS_ID,
            num_threads=1,
            minloglevel=2,
        )
    return model.getvalue()


@contextmanager
def _named(size: int) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # "Internal: src/….cc(604) [condition] what is wrong"
        reason = str(error).rpartition("] ")[2]
        raise ValueError(f"vocabulary.size = {size} doesn't suit the text: {reason}") from error


def load_vocabulary(model: bytes) -> Tokenizer:
    """Load a model made by `train_vocabulary`.

    Raises:
        BundleError: if it is no SentencePiece model.
        ValueError: if its special ids differ from this module's.
    """
    tokenizer = Tokenizer.from_bytes(model)
    found = (tokenizer.pad_id, tokenizer.unk_id, tokenizer.bos_id, tokenizer.eos_id)
    if found != (PAD_ID, UNK_ID, BOS_ID, EOS_ID):
        expected = (PAD_ID, UNK_ID, BOS_ID, EOS_ID)
        raise ValueError(
            f"vocabulary has pad, unk, bos, eos ids {found}, expected {expected}; "
            "train it with training.vocabulary.train_vocabulary"
        )
    return tokenizer


def merge_ranks(model: bytes) -> dict[str, tuple[int, float]]:
    """Map each piece of ordinary text to its id and the rank of its merge.

    Merges are numbered from 0 in the order in which they were learned; single characters were
    there before the first and have 0 as well. Bytes and special pieces are left out.
    """
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    special = (processor.is_byte, processor.is_control, processor.is_unknown)
    pieces = {
        processor.id_to_piece(id): id
        for id in range(processor.vocab_size())
        if not any(is_special(id) for is_special in special)
    }
    return {p: (id, -processor.get_score(id) if len(p) > 1 else 0.0) for p, id in pieces.items()}


@cache
def normalization_rules() -> str:
    """Return the rules in sentencepiece's format: hexadecimal source, tab, hexadecimal target.

    NFKC (Unicode Standard Annex 15) for single characters and for every spelling of a composed
    one, straight quotes, plain spaces, and nothing for what can't be seen.
    """
    rules = dict(_compositions())
    rules |= dict(_compatibility_forms())
    rules |= _STRAIGHT_QUOTES
    rules |= {chr(code): "" for code in _INVISIBLE}
    rules |= {space: " " for space in (*_unicode_spaces(), *_LINE_BREAKS_AND_TABS)}
    return "".join(
        f"{_hexadecimal(source)}\t{_hexadecimal(target)}\n"
        for source, target in sorted(rules.items())
    )


def _hexadecimal(text: str) -> str:
    return " ".join(f"{ord(character):X}" for character in text)


def _characters() -> Iterator[str]:
    """Every character but NUL, which sentencepiece's rules can't hold, and the surrogates."""
    return (chr(code) for code in itertools.chain(range(1, 0xD800), range(0xE000, 0x110000)))


def _unicode_spaces() -> Iterator[str]:
    return (c for c in _characters() if unicodedata.category(c) == "Zs" and c != " ")


def _compatibility_forms() -> Iterator[tuple[str, str]]:
    for character in _characters():
        normalized = unicodedata.normalize("NFKC", character)
        if normalized != character:
            yield character, normalized


def _compositions() -> Iterator[tuple[str, str]]:
    """Yield (spelling, composed) for every character that canonical composition can produce.

    >>> [s for s, c in _compositions() if c == "ế"] == ["e\u0302\u0301", "ê\u0301"]
    True
    """
    for character in _characters():
        if unicodedata.normalize("NFC", character) != character:
            continue
        base, *marks = list(unicodedata.normalize("NFD", character))
        for order in itertools.permutations(marks):
            for cut in range(len(marks)):
                spelling = unicodedata.normalize("NFC", base + "".join(order[:cut])) + "".join(
                    order[cut:]
                )
                if spelling != character and unicodedata.normalize("NFC", spelling) == character:
                    yield spelling, unicodedata.normalize("NFKC", character)


def _with_other_cases(sentences: Iterable[str]) -> Iterator[str]:
    for index, sentence in enumerate(sentences):
        yield sentence
        if index % 20 == 0:
            yield sentence.upper()
        if index % 20 == 10:
            yield sentence.lower()
