"""Bundles of any shape with random weights: speed needs no training."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from export.assemble import Description, graph_files, manifest_for
from export.quantize import calibrate
from export.rebuild import network_of
from service.bundle import Bundle, write_bundle
from training.transformer import Transformer
from training.vocabulary import EOS_ID

_CALIBRATION_LENGTHS = (4, 8, 16, 24)


def random_bundle(like: Bundle, vocabulary_size: int, directory: Path) -> Bundle:
    """An int8 bundle of a network like that of `like`, but for its vocabulary and its weights.

    The tokenizer is that of `like`: words are ids here.
    """
    torch.manual_seed(0)
    network = network_of(like)
    assert isinstance(network, Transformer)
    model = replace(network.config, vocabulary_size=vocabulary_size).build().eval()
    description = Description("random", "1", "en", "fr", like.manifest.limits, attention_layer=0)
    random = np.random.default_rng(0)
    sentences = [
        [*random.integers(EOS_ID + 1, vocabulary_size, length).tolist(), EOS_ID]
        for length in _CALIBRATION_LENGTHS
    ]
    options = description.graph_options
    ranges = calibrate(model, options, [(sentence, sentence) for sentence in sentences])
    files = graph_files(model, ["int8"], options, ranges)
    files["source.model"] = like.tokenizer_bytes("source")
    directory.parent.mkdir(parents=True, exist_ok=True)
    return write_bundle(directory, manifest_for(model, description, ["int8"], {}), files)
