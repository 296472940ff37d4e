"""Real bundles of tiny networks with random weights: what the engine's tests run on."""

from pathlib import Path

import torch
from torch import nn

from export.assemble import Description, graph_files, manifest_for
from service.bundle import Bundle, Limits, write_bundle
from tests import toys
from training.bahdanau import BahdanauConfig
from training.model import Translator
from training.transformer import TransformerConfig
from training.vocabulary import EOS_ID, train_vocabulary

LIMITS = Limits(max_source_tokens=48, max_target_tokens=80)
VOCABULARY_SIZE = 512
TEXT = (
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
        embedding.div_(embedding.norm(dim=1, keepdim=True))  # else the longest always win
        embedding[EOS_ID].mul_(1.5)
        for module in network.modules():
            if isinstance(module, nn.LayerNorm):
                module.weight.normal_().sign_()  # else a tied embedding predicts what it was fed
            elif isinstance(module, nn.GRU):
                for parameter in module.parameters():
                    parameter.mul_(3)
    return network


def tiny_bundle(directory: Path, architecture: str) -> Bundle:
    """Writes a bundle of `tiny_network(architecture)` in fp32."""
    return network_bundle(directory, tiny_network(architecture), LIMITS)


def network_bundle(
    directory: Path, network: Translator, limits: Limits, precision: str = "fp32"
) -> Bundle:
    """Writes a bundle of any network in floats, with a tokenizer of its vocabulary's size."""
    name = f"tiny-{network.config.architecture}"
    description = Description(name, "1", "en", "fr", limits, attention_layer=0)
    files = graph_files(network, [precision], description.graph_options, {})
    files["source.model"] = train_vocabulary(TEXT * 25, network.config.vocabulary_size, 1.0)
    manifest = manifest_for(network, description, [precision], {})
    return write_bundle(directory, manifest, files)


def random_sources(count: int, seed: int = 0) -> list[list[int]]:
    """Source ids with EOS, of all the lengths that the limits allow."""
    lengths, words = range(1, LIMITS.max_source_tokens - 8), range(EOS_ID + 1, VOCABULARY_SIZE)
    return toys.random_sources(count, seed, lengths, words, EOS_ID)
