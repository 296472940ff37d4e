"""Real bundles of tiny networks with random weights: what the engine's tests run on."""

from pathlib import Path

import numpy as np
import torch
from torch import nn

from export.graphs import (
    FloatProducts,
    GraphOptions,
    encoder_graph,
    num_attention_heads,
    step_graph,
)
from service.bundle import (
    Attention,
    Bundle,
    Limits,
    Manifest,
    SearchDefaults,
    SpecialIds,
    TensorSpec,
    write_bundle,
)
from training.bahdanau import BahdanauConfig
from training.model import Translator
from training.transformer import TransformerConfig
from training.vocabulary import BOS_ID, EOS_ID, PAD_ID, UNK_ID, train_vocabulary

LIMITS = Limits(max_source_tokens=48, max_target_tokens=80)
VOCABULARY_SIZE = 512
_TEXT = (
    "A man in a blue shirt is standing on a ladder cleaning a window.",
    "Two young women are walking down the street with their dogs.",
    "The quick brown fox jumps over the lazy dog, doesn't it?",
    "Deux jeunes femmes marchent dans la rue avec leurs chiens.",
)


def tiny_network(architecture: str, seed: int = 0) -> Translator:
    """A network of random weights whose predictions depend on all its input, and end some day."""
    torch.manual_seed(seed)
    config = {
        "transformer": TransformerConfig(
            vocabulary_size=VOCABULARY_SIZE,
            model_size=32,
            num_heads=2,
            feed_forward_size=64,
            encoder_layers=2,
            decoder_layers=2,
        ),
        "bahdanau": BahdanauConfig(
            vocabulary_size=VOCABULARY_SIZE,
            embedding_size=24,
            encoder_size=16,
            decoder_size=32,
            decoder_layers=2,
            attention_size=16,
        ),
    }[architecture]
    network = config.build().eval()
    with torch.no_grad():
        embedding = network.embedding.weight
        embedding /= embedding.norm(dim=1, keepdim=True)  # else the longest always win
        embedding[EOS_ID] *= 1.5
        for module in network.modules():
            if isinstance(module, nn.LayerNorm):
                module.weight.normal_().sign_()  # else a tied embedding predicts what it was fed
            elif isinstance(module, nn.GRU):
                for parameter in module.parameters():
                    parameter *= 3
    return network


def tiny_bundle(directory: Path, architecture: str) -> Bundle:
    """Writes a bundle of `tiny_network(architecture)` in fp32."""
    return network_bundle(directory, tiny_network(architecture), LIMITS)


def network_bundle(directory: Path, network: Translator, limits: Limits) -> Bundle:
    """Writes a bundle of any network in fp32, with a tokenizer of its vocabulary's size."""
    options = GraphOptions(0, limits.max_source_tokens, limits.max_target_tokens)
    manifest = Manifest(
        name=f"tiny-{network.config.architecture}",
        version="1",
        architecture=network.config.architecture,
        source_language="en",
        target_language="fr",
        vocabulary_size=network.config.vocabulary_size,
        special_ids=SpecialIds(pad=PAD_ID, eos=EOS_ID, decoder_start=BOS_ID, unk=UNK_ID),
        limits=limits,
        memory=tuple(TensorSpec(spec.name, spec.axes) for spec in network.memory_specs),
        state=tuple(TensorSpec(spec.name, spec.axes) for spec in network.state_specs),
        attention=Attention(layer=0, num_layers=1, num_heads=num_attention_heads(network)),
        precisions=("fp32",),
        search=SearchDefaults(max_length=limits.max_target_tokens),
    )
    files = {
        "source.model": train_vocabulary(_TEXT * 25, network.config.vocabulary_size, 1.0),
        "fp32/encoder.onnx": encoder_graph(network, FloatProducts(), options).SerializeToString(),
        "fp32/step.onnx": step_graph(network, FloatProducts(), options).SerializeToString(),
    }
    return write_bundle(directory, manifest, files)


def random_sources(count: int, seed: int = 0) -> list[list[int]]:
    """Source ids with EOS, of all the lengths that the limits allow."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, LIMITS.max_source_tokens - 8, count)
    return [[*rng.integers(4, VOCABULARY_SIZE, n).tolist(), EOS_ID] for n in lengths]
