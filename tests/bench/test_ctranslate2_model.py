"""The converted model is the network: same tokens, same scores, same attention."""

from pathlib import Path

import ctranslate2
import numpy as np
import pytest
import torch

from bench.ctranslate2_model import save_ctranslate2_model
from service.decoding import DecodingOptions, Stopping, decode
from training.step_model import TorchStepModel
from training.transformer import TransformerConfig

PIECES = ["<pad>", "<unk>", "<s>", "</s>", *(f"w{index}" for index in range(60))]
CONFIG = TransformerConfig(
    vocabulary_size=len(PIECES),
    model_size=32,
    num_heads=4,
    feed_forward_size=64,
    encoder_layers=2,
    decoder_layers=2,
)
SOURCES = [[4, 9, 30, 3], [5, 3], [17, 8, 8, 60, 41, 22, 13, 3]]


@pytest.mark.parametrize("beam_size", [1, 4])
def test_the_converted_model_translates_token_for_token_alike(
    tmp_path: Path, beam_size: int
) -> None:
    torch.manual_seed(3)
    model = CONFIG.build().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    save_ctranslate2_model(model, PIECES, tmp_path / "model")
    translator = ctranslate2.Translator(str(tmp_path / "model"), inter_threads=1, intra_threads=1)
    theirs = translator.translate_batch(
        [[PIECES[index] for index in source] for source in SOURCES],
        beam_size=beam_size,
        max_decoding_length=16,
        return_scores=True,
        return_attention=True,
    )
    options = DecodingOptions(
        beam_size=beam_size,
        max_length=16,
        max_length_ratio=0,
        stopping=Stopping.FINISHED,
        attention=True,
    )
    ours = decode(TorchStepModel(model, slice(4, 8)), SOURCES, options)
    for their, (our, *_) in zip(theirs, ours, strict=True):
        assert their.hypotheses[0] == [PIECES[index] for index in our.ids]
        assert our.attention is not None
        # The first row that their beam search returns doesn't even sum to 1.
        first = 0 if beam_size == 1 else 1
        theirs_by_token = their.attention[0][first : len(our.ids)]
        np.testing.assert_allclose(theirs_by_token, our.attention[first:], atol=1e-5)
