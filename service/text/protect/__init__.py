"""What must not change in a text: hidden from the model, and put back where its translation is.

Placeholders, addresses, numbers, tags, spans that the caller gives and terms of its glossary come
out exactly once: as they were, or as the target term. Pure functions of strings, spans (half open,
in code points) and a matrix. Knows nothing of sentences but their spans; never fails for what a
model writes.

    protection = Protection(frozenset([Kind.PLACEHOLDER]), html=False, glossary={})
    masked = protect(source, protection, spans)     the model sees `masked.text`, not the source
    for sentence in ...                             spans of `masked.text`, in order
        start, end = extent(masked, sentence)       this much of the source is replaced ...
        if masked.is_translatable(sentence)         ... or stays, if there's nothing to translate
            restored = restore(masked, sentence, Decoded(...))

What the caller gets: `restored.text` in the place of each extent, and the source as it is between
them and around. Spans of source tokens go through `masked.source_span`, those of target tokens
through `restored.map.to_new`. A sentence should not be cut inside of a stand-in: `part_across`.

The parts in reading order: options, terms, markup, patterns, view, regions, stand_ins, masking (the
text that the model sees), tree, placing, settling, restoring (the text that the caller gets).
"""

from service.text.protect.markup import Tag, find_tags
from service.text.protect.masking import Masked, MaskedTag, Part, protect
from service.text.protect.options import FOUND_KINDS, Kind, Protection
from service.text.protect.patterns import may_have_address
from service.text.protect.restoring import Restored, RestoredPart, restore
from service.text.protect.settling import Decoded
from service.text.protect.tree import extent

__all__ = [
    "FOUND_KINDS",
    "Decoded",
    "Kind",
    "Masked",
    "MaskedTag",
    "Part",
    "Protection",
    "Restored",
    "RestoredPart",
    "Tag",
    "extent",
    "find_tags",
    "may_have_address",
    "protect",
    "restore",
]
