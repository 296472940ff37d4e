"""Text on its way through a translator, before and after the model.

The parts in reading order: layout (the white space around a segment), tokenizer (SentencePiece,
with the characters that each token stands for).
"""

from service.text.layout import LAYOUT_CHARACTERS, is_translatable, trim
from service.text.tokenizer import SPACE_MARK, Token, Tokenizer

__all__ = [
    "LAYOUT_CHARACTERS",
    "SPACE_MARK",
    "Token",
    "Tokenizer",
    "is_translatable",
    "trim",
]
