"""Whose attention tells best where a word comes from: measured, and chosen by, in export.

attention    what every head looks at while the network is made to say given translations
reference    the links of a statistical aligner, and how far an alignment agrees with them
aligner      those links, made by eflomal or read from a file
shared       what can be said without an aligner: pieces that both languages share
choice       the layer that the step graph returns, and why
command      `python -m export align`: the table of layers, heads and served graphs
"""

from export.alignment.aligner import is_installed, references_of
from export.alignment.choice import Choice, by_agreement, by_hand, by_shared_pieces
from export.alignment.reference import Agreement, AlignedPair, Reference, aligned_pairs
from export.alignment.shared import alignment_scores

__all__ = [
    "Agreement",
    "AlignedPair",
    "Choice",
    "Reference",
    "aligned_pairs",
    "alignment_scores",
    "by_agreement",
    "by_hand",
    "by_shared_pieces",
    "is_installed",
    "references_of",
]
