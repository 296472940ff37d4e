"""Tags of XML and HTML in a text, and which of them belong together.

Reads what people write rather than validates: crossed and lonely tags are tags without a partner.
Comments, declarations and elements of which the inside is no text (`script`) are one tag as a
whole. Of those that nobody closes, a comment, `script` and `style` reach to the end of the text, as
in a browser. Takes linear time for any text.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from service.text.checking import Check, checked, go_on
from service.text.rewriting import Span

# Tags that end a line of text: sentences don't go on behind them.
_BLOCKS = frozenset(
    "address article aside blockquote body br button caption center dd details dialog div dl dt "
    "fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 head header hr html legend li main "
    "menu nav ol optgroup option p pre script section select style summary table tbody td textarea "
    "tfoot th thead title tr ul".split()
)
_VOID = frozenset(
    "area base br col embed hr img input link meta param source track wbr".split()
)  # elements without an end
_RAW = ("pre", "script", "style", "svg")  # elements whose inside is not even looked at
# Elements that hold code, as `translate="no"` and `class="notranslate"` would say.
_VERBATIM = frozenset(["code", "kbd", "math", "samp", "var"])
_NO_TRANSLATION = re.compile(
    r"""\s(?:translate\s*=\s*["']?no\b|class\s*=\s*(?:"[^"]*\bnotranslate\b|'[^']*\bnotranslate\b|"""
    r"""notranslate\b))""",
    re.IGNORECASE,
)
_MARKUP = re.compile(
    r"""<(?:(?P<special>!--|!\[CDATA\[|\?)"""
    r"""|(?P<slash>/?)(?P<name>[a-z][\w.-]*+(?::[a-z][\w.-]*+)?)(?=[\s/>])(?:[^<>"']|"[^"]*"|'[^']*')*+>"""
    r"""|![a-z][^<>]*+>)""",
    re.IGNORECASE,
)
# Where that ends which is one tag as a whole; `\Z` if a browser goes on to the end of the text.
# The end of an element matches wherever it begins, or a search would go on behind each try.
_END_OF_ELEMENT = r"</{}(?![^\s/>])[^>]*+>?"
_ENDS = {
    opening: re.compile(end, re.IGNORECASE)
    for opening, end in {
        "!--": r"--!?>|\Z",
        "![CDATA[": r"\]\]>",
        "?": r"\?>",
        "pre": _END_OF_ELEMENT.format("pre"),
        "script": _END_OF_ELEMENT.format("script") + r"|\Z",
        "style": _END_OF_ELEMENT.format("style") + r"|\Z",
        "svg": _END_OF_ELEMENT.format("svg"),
    }.items()
}


@dataclass(frozen=True, slots=True)
class Tag:
    """`text[start:end]`, which opens or closes an element, or is one that holds nothing.

    partner: index of the other tag of its pair, in the list of all.
    is_block: it stands between lines of text.
    is_verbatim: it opens an element that must not be translated.
    """

    start: int
    end: int
    name: str
    is_closing: bool = False
    is_empty: bool = False
    is_verbatim: bool = False
    partner: int | None = None

    @property
    def is_block(self) -> bool:
        return self.name in _BLOCKS

    def with_partner(self, partner: int | None) -> "Tag":
        if partner == self.partner:
            return self
        # Written out: `replace` takes three times as long, and a page has thousands of tags.
        flags = self.is_closing, self.is_empty, self.is_verbatim
        return Tag(self.start, self.end, self.name, *flags, partner)


def find_tags(text: str, check: Check = go_on) -> tuple[Tag, ...]:
    """Return the tags of `text` in order."""
    tags = _with_partners(list(_scan(text, check)), check)
    if any(tag.is_verbatim and tag.is_block for tag in tags):
        tags = _with_partners(list(_without_insides(tags)), check)
    return tuple(tags)


def verbatim_elements(tags: Sequence[Tag]) -> list[Span]:
    """Return the spans of elements that must not be translated, tags included."""
    return [
        (tag.start, tags[tag.partner].end)
        for tag in tags
        if tag.is_verbatim and tag.partner is not None
    ]


def _scan(text: str, check: Check) -> Iterator[Tag]:
    endless: set[str] = set()  # what is not closed from here on
    position = 0
    # Nothing but a tag's own length makes a search long: other threads wait for it.
    while (start := text.find("<", position)) >= 0:
        check()
        match = _MARKUP.match(text, start)
        if match is None:
            position = start + 1
            continue
        position = match.end()
        name = (match["name"] or "").lower()
        if special := match["special"]:
            # `<!-->` is a whole comment.
            inside = start + len("<!") if special == "!--" else position
            end = _find_end(text, special, inside, endless)
            if end is not None:
                yield Tag(start, end, "", is_empty=True)
                position = end
        elif name in _RAW and not match["slash"] and not match[0].endswith("/>"):
            position = _find_end(text, name, position, endless) or position
            yield Tag(start, position, name, is_empty=True)
        else:
            yield _tag(match, name)


def _tag(match: re.Match[str], name: str) -> Tag:
    start, end = match.span()
    if match["slash"]:
        return Tag(start, end, name, is_closing=True)
    is_empty = not name or name in _VOID or match[0].endswith("/>")
    is_verbatim = name in _VERBATIM or _NO_TRANSLATION.search(match[0]) is not None
    return Tag(start, end, name, is_empty=is_empty, is_verbatim=is_verbatim and not is_empty)


def _find_end(text: str, opening: str, position: int, endless: set[str]) -> int | None:
    """Return where what was opened ends; an end that is missing is searched for only once."""
    if opening in endless:
        return None
    match = _ENDS[opening].search(text, position)
    if match is None:
        endless.add(opening)
        return None
    return match.end()


def _with_partners(tags: Sequence[Tag], check: Check) -> list[Tag]:
    partners = dict[int, int]()
    for opening, closing in _pairs(tags):
        partners[opening], partners[closing] = closing, opening
    return [tag.with_partner(partners.get(index)) for index, tag in enumerate(checked(tags, check))]


def _without_insides(tags: Sequence[Tag]) -> Iterator[Tag]:
    """Make one tag of each block that must not be translated."""
    position = 0
    while position < len(tags):
        tag = tags[position]
        if tag.is_verbatim and tag.is_block and tag.partner is not None:
            position = tag.partner
            tag = Tag(tag.start, tags[position].end, tag.name, is_empty=True)
        yield tag
        position += 1


def _pairs(tags: Sequence[Tag]) -> Iterator[tuple[int, int]]:
    """Match each closing tag with the last open one of its name; those in between stay alone."""
    open_tags: list[int] = []
    num_open: Counter[str] = Counter()
    for index, tag in enumerate(tags):
        if tag.is_closing and num_open[tag.name]:
            while True:
                opening = open_tags.pop()
                num_open[tags[opening].name] -= 1
                if tags[opening].name == tag.name:
                    break
            yield opening, index
        elif not tag.is_closing and not tag.is_empty:
            open_tags.append(index)
            num_open[tag.name] += 1
