"""What a bundle is, for people: `inspect` shows its parts, `card` says what it is good for.

Both read the manifest and the graphs and change nothing.
"""

from export.inspection.card import card
from export.inspection.parts import Parts, parts_of

__all__ = ["Parts", "card", "parts_of"]
