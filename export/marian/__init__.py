"""Marian checkpoints (Junczys-Dowmunt et al. 2018) in Hugging Face's layout, such as OPUS-MT's.

    settings     config.json and its neighbours -> what the network is, every fault at once
    vocabulary   vocab.json and SentencePiece files -> our order of ids, tokenizers of them
    weights      tensors, read without running what a pickle says -> our Transformer's
    checkpoint   all of it, and what the checkpoint says of itself
    command      python -m export import

A checkpoint becomes an ordinary network with ordinary tokenizers: nothing after this package knows
that one was imported.

Raises `MarianError` for a folder that is no such checkpoint, or one that asks for what isn't
supported: names the file, the key, its value and what would be.
"""

from export.marian.checkpoint import MarianCheckpoint, read_checkpoint
from export.marian.errors import MarianError

__all__ = ["MarianCheckpoint", "MarianError", "read_checkpoint"]
