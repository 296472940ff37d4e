"""Tiny checkpoints of Marian's real architecture, made and saved by `transformers`."""

import json
import logging
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import GenerationConfig, MarianConfig, MarianMTModel, MarianTokenizer

from bench.marian_checkpoint import opus_generation, pieces_of, train_pieces
from tests.tiny_bundle import TEXT

ENGLISH = (*TEXT[:3], "I don't know — what does it cost: $5, or 7%?", "Tom's “big” dog (2) barked!")
FRENCH = (
    TEXT[3],
    "Je ne sais pas combien ça coûte : 5 $, ou 7 % ?",
    "Le gros chien de Tom aboya !",
)
LANGUAGE_TOKENS = (">>deu<<", ">>fra<<")
SIZES = {
    "d_model": 32,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "encoder_layers": 2,
    "decoder_layers": 1,
    "max_position_embeddings": 128,
}


@dataclass(frozen=True, slots=True)
class Variant:
    """What differs between Marian checkpoints.

    separate: each side has a vocabulary and a table of its own. two_vocabularies: the former alone.
    """

    name: str
    activation: str = "swish"
    separate: bool = False
    two_vocabularies: bool = False
    multilingual: bool = False
    scale_embedding: bool = True
    model_type: str = "unigram"
    pickled: bool = False
    half: bool = False


VARIANTS = (
    Variant("plain"),
    Variant("relu-separate", activation="relu", separate=True, two_vocabularies=True),
    Variant("gelu-two-vocabularies", activation="gelu", two_vocabularies=True, half=True),
    Variant("multilingual", multilingual=True, pickled=True),
    Variant("bpe-unscaled", scale_embedding=False, model_type="bpe"),
)


def write_marian(
    directory: Path,
    variant: Variant,
    texts: tuple[Sequence[str], Sequence[str]] = (ENGLISH * 25, FRENCH * 25),
    num_pieces: int = 100,
    *,
    seed: int = 0,
    **sizes: int,
) -> Path:
    """Save a checkpoint of random weights whose translations depend on all their source, and end.

    As OPUS-MT's: ids of vocab.json alone, pad last, a bias on the logits, pad never said. A few
    pieces of source.spm have no id. `texts` of both languages are what the pieces are made of.
    """
    directory.mkdir(parents=True)
    spelled = _write_pieces(directory, variant, texts, num_pieces)
    source, target = (_ids(pieces, variant) for pieces in _pieces(variant, spelled))
    (directory / "vocab.json").write_text(json.dumps(source))
    if variant.two_vocabularies:
        (directory / "target_vocab.json").write_text(json.dumps(target))
    flags = {"separate_vocabs": variant.two_vocabularies, "model_max_length": 512}
    (directory / "tokenizer_config.json").write_text(json.dumps(flags))
    model = random_model(variant, len(source), seed, **sizes)
    save(model.half() if variant.half else model, directory, variant)
    return directory


def save(model: MarianMTModel, directory: Path, variant: Variant) -> None:
    """Write config and weights, as safetensors or as a pickle."""
    model.save_pretrained(directory)
    if variant.pickled:
        (directory / "model.safetensors").unlink()
        torch.save(model.state_dict(), directory / "pytorch_model.bin")


def random_model(variant: Variant, rows: int, seed: int = 0, **sizes: int) -> MarianMTModel:
    """The network alone; the last of the `rows` of its table, or of its two tables, is pad."""
    torch.manual_seed(seed)
    given: dict[str, Any] = {
        "vocab_size": rows,
        "decoder_vocab_size": rows,
        "pad_token_id": rows - 1,
        "decoder_start_token_id": rows - 1,
        "activation_function": variant.activation,
        "scale_embedding": variant.scale_embedding,
        "share_encoder_decoder_embeddings": not variant.separate,
    }
    config = MarianConfig(**(given | SIZES | sizes))
    assert config.eos_token_id == 0
    model: MarianMTModel = MarianMTModel(config).eval()
    shortened = 0.3 if variant.scale_embedding else 1.0
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.LayerNorm):
                module.weight.normal_().sign_()  # else a tied embedding predicts what it was fed
            elif isinstance(module, nn.Embedding) and module.weight.requires_grad:
                # So short that positions count: else one word alone decides which is the next.
                module.weight.normal_()
                module.weight.div_(module.weight.norm(dim=1, keepdim=True) / shortened)
                if module.padding_idx is not None:
                    module.weight[module.padding_idx] = 0
            elif isinstance(module, nn.Linear) and module is not model.lm_head:
                nn.init.xavier_uniform_(module.weight)
                module.bias.normal_(std=0.1)
        model.final_logits_bias.normal_(std=0.2)
        _let_end(model, rows - len(LANGUAGE_TOKENS) - 1)
    model.generation_config = generation(rows - 1)
    return model


def _let_end(model: MarianMTModel, num_words: int) -> None:
    """Give EOS the bias with which it is one word in eight, and hardly ever the first one."""
    sources, targets = torch.randint(2, num_words, (2, 32, 12))
    targets[:, 0] = model.config.decoder_start_token_id
    logits = model(input_ids=sources, decoder_input_ids=targets).logits
    logits[:, :, 0] -= model.final_logits_bias[0, 0]
    missing = logits[:, :, 1:].amax(-1) - logits[:, :, 0]
    model.final_logits_bias[0, 0] = min(missing.quantile(1 / 8), missing[:, 0].min())


def generation(pad: int, **changes: Any) -> GenerationConfig:
    """All that OPUS-MT's checkpoints have in generation_config.json."""
    searched = {"max_length": 100, "num_beams": 4, "renormalize_logits": True}
    return opus_generation(pad, **(searched | changes))


def load_tokenizer(directory: Path) -> MarianTokenizer:
    """Marian's own; without sacremoses it leaves punctuation alone, and says so."""
    logging.getLogger("transformers").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tokenizer: MarianTokenizer = MarianTokenizer.from_pretrained(directory)
    return tokenizer


def _write_pieces(
    directory: Path,
    variant: Variant,
    texts: tuple[Sequence[str], Sequence[str]],
    num_pieces: int,
) -> list[list[str]]:
    """source.spm and target.spm; what texts of each side can become."""
    found = []
    for name, some in zip(("source", "target"), texts, strict=True):
        model = train_pieces(some, num_pieces, variant.model_type)
        (directory / f"{name}.spm").write_bytes(model)
        found.append(pieces_of(model))
    return found


def _pieces(variant: Variant, spelled: Sequence[Sequence[str]]) -> list[list[str]]:
    """Of each side; the last ones of the source's are left out."""
    source, target = spelled
    source = source[:-3]
    if not variant.two_vocabularies:
        return [[*source, *target]] * 2
    size = max(len(source), len(target))  # so that pad has the same id
    return [[*some, *(f"<{id}>" for id in range(len(some), size))] for some in (source, target)]


def _ids(pieces: Sequence[str], variant: Variant) -> dict[str, int]:
    tokens = LANGUAGE_TOKENS if variant.multilingual else ()
    # Not in the order of any file.
    names = dict.fromkeys(["</s>", "<unk>", *sorted(pieces), *tokens, "<pad>"])
    return {piece: id for id, piece in enumerate(names)}
