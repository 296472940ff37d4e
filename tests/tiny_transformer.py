"""The sizes of a Transformer small enough to be compared with formulas in milliseconds."""

from typing import Final

from training.transformer import TransformerConfig

CONFIG: Final = TransformerConfig(
    vocabulary_size=23,
    model_size=16,
    num_heads=2,
    feed_forward_size=24,
    encoder_layers=2,
    decoder_layers=3,
    dropout=0.0,
    max_positions=12,
)
