"""Text on its way through a translator, before and after the model.

The parts in the order of the way: languages, detection; protect (what must not change), layout,
segment (lines and sentences), case, tokenizer (SentencePiece, with the characters that each token
stands for), unknown (what it can't spell), split (long sentences); typography of the target. All
but the tokenizer are pure functions of text; rewriting, words, searching and checking (long work
that can be ended) are what they share.
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
