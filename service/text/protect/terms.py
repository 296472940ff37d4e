"""The terms of a glossary, found in a text in one pass over its words.

A tree of words: what begins at a word of the text is followed down the tree while the text agrees,
so that the number of terms costs nothing.

    search           -> "recherche"
      └ " "
          └ engine   -> "moteur de recherche"
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from service.text.checking import Check, go_on
from service.text.rewriting import Span
from service.text.searching import find_all
from service.text.words import SPACELESS_CLASS, is_inside

# Terms begin and end with whole ones: nothing else is a word in `joined`, but for accents.
_WORD = re.compile(rf"[^\W{SPACELESS_CLASS}]+|.", re.DOTALL)
_VISIBLE_WORD = re.compile(rf"[^\W{SPACELESS_CLASS}]+|\S")


@dataclass(slots=True)
class _Node:
    """Where the words from the root lead. target: of the term that they are, if they are one."""

    target: str | None = None
    next: dict[str, "_Node"] = field(default_factory=dict)


class Terms:
    """A glossary to look for: source term -> target term, neither with white space around it.

    Letters are compared as they are, but a term may begin a sentence: `engine` is found as `Engine`
    too, and its target term then begins with a capital.
    """

    def __init__(self, glossary: Mapping[str, str]) -> None:
        self._root = _Node()
        for source, target in _with_capitals(glossary).items():
            node = self._root
            for word in _WORD.findall(source):
                node = node.next.setdefault(word, _Node())
            node.target = target

    def find(self, text: str, check: Check = go_on) -> Iterator[tuple[Span, str]]:
        """Yield the whole words that are a source term, with their target term.

        The first one wins, then the longest. Time is linear in the text, for terms of a few words.
        """
        position = 0
        for match in find_all(_VISIBLE_WORD, text, check=check):
            start = match.start()
            node = self._root.next.get(match[0])
            if node is None or start < position or is_inside(text, start):
                continue
            if found := _longest(node, text, match.end()):
                position, target = found
                yield (start, position), target


def _longest(node: _Node, text: str, position: int) -> tuple[int, str] | None:
    """Where the longest term ends that goes on like the text from there, and its target."""
    found = None
    while True:
        if node.target is not None and not is_inside(text, position):
            found = position, node.target
        word = _WORD.match(text, position) if node.next else None
        following = node.next.get(word[0]) if word else None
        if word is None or following is None:
            return found
        node, position = following, word.end()


def _with_capitals(glossary: Mapping[str, str]) -> dict[str, str]:
    terms = {}
    for source, target in glossary.items():
        terms[source[0].upper() + source[1:]] = target[:1].upper() + target[1:]
    return terms | dict(glossary)
