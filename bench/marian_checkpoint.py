"""A Marian checkpoint of OPUS-MT's base size with random weights: speed needs no training."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from transformers import GenerationConfig, MarianConfig, MarianMTModel

VOCABULARY_SIZE = 58_101
SIZES: dict[str, int] = {
    "d_model": 512,
    "encoder_attention_heads": 8,
    "decoder_attention_heads": 8,
    "encoder_ffn_dim": 2048,
    "decoder_ffn_dim": 2048,
    "encoder_layers": 6,
    "decoder_layers": 6,
    "max_position_embeddings": 512,
}
_NUM_PIECES = 2000
_EOS = 0


def write_checkpoint(directory: Path, texts: Sequence[str], **sizes: int) -> MarianMTModel:
    """Save it, and return it; its pieces are made of `texts`, the rest of its rows have no text.

    `sizes` are settings of `MarianConfig` other than base's.
    """
    directory.mkdir(parents=True)
    pieces = _write_pieces(directory, texts)
    rows = sizes.get("vocab_size", VOCABULARY_SIZE)
    named = ["</s>", "<unk>", *pieces]
    named += [f"<{id}>" for id in range(len(named), rows - 1)]
    ids = {piece: id for id, piece in enumerate([*named, "<pad>"])}
    (directory / "vocab.json").write_text(json.dumps(ids), encoding="utf-8")
    flags = {"tokenizer_class": "MarianTokenizer", "separate_vocabs": False}
    (directory / "tokenizer_config.json").write_text(json.dumps(flags), encoding="utf-8")
    model = _random_model(rows, sizes)
    model.save_pretrained(directory)
    return model


def _random_model(rows: int, sizes: dict[str, int]) -> MarianMTModel:
    pad = rows - 1
    given: dict[str, Any] = {
        "vocab_size": rows,
        "decoder_vocab_size": rows,
        "pad_token_id": pad,
        "decoder_start_token_id": pad,
        "eos_token_id": _EOS,
        "activation_function": "swish",
        "scale_embedding": True,
    }
    torch.manual_seed(0)
    model = MarianMTModel(MarianConfig(**(given | SIZES | sizes)))
    model.train(False)
    model.generation_config = opus_generation(pad)
    return model


def opus_generation(pad: int, **others: Any) -> GenerationConfig:
    """What generation_config.json says of special ids in OPUS-MT's checkpoints, and `others`."""
    given: dict[str, Any] = {
        "bad_words_ids": [[pad]],
        "decoder_start_token_id": pad,
        "eos_token_id": _EOS,
        "forced_eos_token_id": _EOS,
        "pad_token_id": pad,
    }
    untyped: Any = GenerationConfig
    config: GenerationConfig = untyped(**(given | others))
    return config


def train_pieces(texts: Sequence[str], num_pieces: int, model_type: str = "unigram") -> bytes:
    """A SentencePiece model with at most so many pieces, <unk>, <s> and </s> first."""
    file = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=file,
        model_type=model_type,
        vocab_size=num_pieces,
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
    )
    return file.getvalue()


def pieces_of(model: bytes) -> list[str]:
    """What text can become, without the special pieces."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(id) for id in range(3, processor.get_piece_size())]


def _write_pieces(directory: Path, texts: Sequence[str]) -> list[str]:
    """source.spm and target.spm, which are one; what text can become."""
    model = train_pieces(texts, _NUM_PIECES)
    for name in ("source.spm", "target.spm"):
        (directory / name).write_bytes(model)
    return pieces_of(model)
