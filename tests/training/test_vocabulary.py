"""The vocabulary on a small text: what is normalised, what survives, what is refused."""

import io
import unicodedata

import pytest
import sentencepiece

from service.text import Tokenizer
from training.vocabulary import (
    BOS_ID,
    EOS_ID,
    PAD_ID,
    UNK_ID,
    load_vocabulary,
    merge_ranks,
    normalization_rules,
    train_vocabulary,
)

SENTENCES = [
    "The café is open, isn't it?",
    "Le café est ouvert, n'est-ce pas ?",
    'She said: "I don\'t know."',
    "Elle a dit : « Je ne sais pas. »",
    "We have 12 dogs and 345 cats.",
    "Nous avons 12 chiens et 345 chats.",
]


@pytest.fixture(scope="module")
def vocabulary() -> bytes:
    return train_vocabulary(SENTENCES * 3, size=460, character_coverage=0.9999)


@pytest.fixture(scope="module")
def tokenizer(vocabulary: bytes) -> Tokenizer:
    return load_vocabulary(vocabulary)


def test_special_ids_are_the_agreed_ones(tokenizer: Tokenizer) -> None:
    ids = (tokenizer.pad_id, tokenizer.unk_id, tokenizer.bos_id, tokenizer.eos_id)
    assert ids == (PAD_ID, UNK_ID, BOS_ID, EOS_ID) == (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("cafe\u0301", "café"),
        ("e\u0302\u0301 e\u0323\u0302 e\u0302\u0323 \u00ea\u0301", "ế ệ ệ ế"),
        ("\u1112\u1161\u11ab", "한"),
        ("isn’t isn‘t isnʼt", "isn't isn't isn't"),
        ("“I know”", '"I know"'),
        ("ca\u00adfé\u200b \u2066is\u2069 \ufeffopen\u200f", "café is open"),
        ("ouvert\u00a0? ouvert\u202f? ouvert\u2009?", "ouvert ? ouvert ? ouvert ?"),
        ("one\r\ntwo\tthree\u2028four", "one two three four"),
        ("ﬁne ｄｏｇ ②", "fine dog 2"),
        ("  two   spaces ", "two spaces"),
    ],
)
def test_two_spellings_of_a_text_have_the_same_ids(
    tokenizer: Tokenizer, written: str, meant: str
) -> None:
    assert tokenizer.encode(written) == tokenizer.encode(meant)
    assert tokenizer.decode(tokenizer.encode(written)) == meant


@pytest.mark.parametrize("text", ["🎉", "a👩\u200d👩\u200d👧b", "Zażółć gęślą", "日本語", "π ≈ 3"])
def test_characters_outside_the_vocabulary_survive_as_bytes(
    tokenizer: Tokenizer, text: str
) -> None:
    ids = tokenizer.encode(text)
    assert UNK_ID not in ids
    assert tokenizer.decode(ids) == text


def test_digits_are_pieces_of_their_own(tokenizer: Tokenizer) -> None:
    pieces = [token.piece for token in tokenizer.encode_tokens("345")]
    assert pieces[-3:] == ["3", "4", "5"]


def test_capitals_do_not_fall_into_bytes(tokenizer: Tokenizer) -> None:
    tokens = tokenizer.encode_tokens("THE CAFÉ IS OPEN, ISN'T IT?")
    assert not any(token.piece.startswith("<0x") for token in tokens)


def test_every_rule_is_nfkc_except_for_what_is_changed_on_purpose() -> None:
    rules = [line.split("\t") for line in normalization_rules().splitlines()]
    pairs = [
        tuple("".join(chr(int(c, 16)) for c in side.split()) for side in rule) for rule in rules
    ]
    others = {source for source, target in pairs if unicodedata.normalize("NFKC", source) != target}
    assert {"’", "“", "\u200b", "\n"} <= others
    assert all(len(source) == 1 for source in others)


def test_every_merge_joins_two_pieces_that_were_there_before_it(vocabulary: bytes) -> None:
    ranks = merge_ranks(vocabulary)
    merged = [piece for piece in ranks if len(piece) > 1]
    assert merged
    for piece in merged:
        rank = ranks[piece][1]
        halves = ((piece[:cut], piece[cut:]) for cut in range(1, len(piece)))
        earlier = [
            pair
            for pair in halves
            if all(half in ranks and (len(half) == 1 or ranks[half][1] < rank) for half in pair)
        ]
        assert earlier, piece


def test_a_model_with_other_special_ids_is_refused() -> None:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES), model_writer=model, vocab_size=60, minloglevel=2
    )
    with pytest.raises(ValueError, match=r"pad, unk, bos, eos ids \(-1, 0, 1, 2\)"):
        load_vocabulary(model.getvalue())
