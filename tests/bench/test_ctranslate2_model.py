"""The converted model is the network: same tokens, same scores, same attention."""

from pathlib import Path

import ctranslate2
import numpy as np
import pytest
import torch

from bench.ctranslate2_model import save_ctranslate2_model
from bench.vocabulary_map import save_vocabulary_map
from service.bundle import Lexicon
from service.decoding import DecodingOptions, Stopping, decode
from training.step_model import TorchStepModel
from training.transformer import TransformerConfig
from training.vocabulary import BOS_ID, UNK_ID

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


def test_with_a_vocabulary_map_only_what_is_listed_is_said(tmp_path: Path) -> None:
    torch.manual_seed(3)
    save_ctranslate2_model(CONFIG.build().eval(), PIECES, tmp_path / "model")
    common, own = [10, 11], [20, 21, 22]
    offsets = np.where(np.arange(len(PIECES) + 1) > SOURCES[0][0], len(own), 0)
    lexicon = Lexicon(*(np.array(ids, np.int32) for ids in (common, offsets, own)))
    save_vocabulary_map(lexicon, PIECES, tmp_path / "model")
    translator = ctranslate2.Translator(str(tmp_path / "model"), inter_threads=1, intra_threads=1)
    source = [PIECES[index] for index in SOURCES[0]]
    [free], [listed] = (
        translator.translate_batch(
            [source], max_decoding_length=16, min_decoding_length=16, use_vmap=use_map
        )
        for use_map in (False, True)
    )
    allowed = {PIECES[index] for index in (UNK_ID, BOS_ID, *common, *own)}
    assert set(listed.hypotheses[0]) <= allowed
    assert not set(free.hypotheses[0]) <= allowed
