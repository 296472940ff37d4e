"""Text on its way through a translator, before and after the model.

    layout      the white space around a segment; whether it has anything to translate
    tokenizer   SentencePiece, with the characters that each token stands for
"""

from service.text.layout import LAYOUT_CHARACTERS, Layout, is_translatable, split_layout
from service.text.tokenizer import SPACE_MARK, Token, Tokenizer

__all__ = [
    "LAYOUT_CHARACTERS",
    "SPACE_MARK",
    "Layout",
    "Token",
    "Tokenizer",
    "is_translatable",
    "split_layout",
]
