"""Characters that a model can't spell: a text of them is foreign, a few are hidden from it.

"I ❤ 出口 signs"  ->  "I Tom Boston signs", and back through `protect.restore`
"""

import unicodedata
from collections.abc import Iterator, Sequence, Set

from service.text.protect import Kind, Masked, Part
from service.text.protect.stand_ins import stand_ins, used_words
from service.text.rewriting import Rewriter, Span, SpanMap
from service.text.words import is_word_character, words


def is_foreign(text: str, unknown: Sequence[int]) -> bool:
    """Whether most letters of a text are unknown; these are places in it."""
    letters = sum(map(str.isalpha, text))
    return 2 * sum(text[index].isalpha() for index in unknown) > letters


def hide_unknown(text: str, unknown: Sequence[int]) -> Masked | None:
    """Hide unknown characters from the model, with the words that they are in.

    Controls and joiners just go. Unknown punctuation stays: a name in its place would say more than
    it does. None if that is all.
    """
    runs = list(_runs(text, set(unknown)))
    writer, names, parts = Rewriter(text), stand_ins(used_words(text)), list[Part]()
    inside = {index for run in runs for index in range(*run)}
    controls = [(i, i + 1) for i in unknown if i not in inside and _is_control(text[i])]
    for start, end in sorted([*runs, *controls]):
        writer.keep(start)
        if start in inside:
            parts.append(_hide(writer, text, (start, end), next(names)))
        else:
            writer.replace(end, "")
    masked, to_masked = writer.finish()
    if masked == text:
        return None
    return Masked(text, masked, False, tuple(parts), (), (SpanMap(), to_masked))


def _runs(text: str, unknown: Set[int]) -> Iterator[Span]:
    """The words and signs to hide, in order; neighbours are one."""
    found = (word for word in words(text) if any(_matters(text, i, unknown) for i in range(*word)))
    run: Span | None = None
    for start, end in found:
        if run and run[1] < start:
            yield run
            run = None
        run = (run[0] if run else start), end
    if run:
        yield run


def _hide(writer: Rewriter, text: str, run: Span, name: str) -> Part:
    start, end = run
    before = " " * (start > 0 and is_word_character(text[start - 1]))
    after = " " * (end < len(text) and is_word_character(text[end]))
    first, last = writer.replace(end, before + name + after)
    place = first + len(before), last - len(after)
    return Part(Kind.UNKNOWN, start, end, text[start:end], name, place)


def _matters(text: str, index: int, unknown: Set[int]) -> bool:
    if index not in unknown or _is_control(text[index]):
        return False
    return unicodedata.category(text[index])[0] not in "PZ"


def _is_control(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf")
