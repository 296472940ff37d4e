"""What in a text is no language: placeholders, addresses, and numbers that mean an amount.

Works on a view of the text in which each tag is one TAG_MARK, which no pattern goes across. Every
pattern takes linear time for any text.
"""

import re
from collections.abc import Iterator, Mapping

from service.text.protect.options import Kind
from service.text.rewriting import Span
from service.text.searching import find_all
from service.text.words import joined

TAG_MARK = "\ue000"

_PLACEHOLDER = re.compile(
    r"""
      \{{2,3} [^{}\n]{0,80}+ \}{2,3}                              # {{ name }}
    | \{% [^{}\n]{0,80} %\}                                       # {% if x %}
    | [$#]? \{ [^{}\s]{0,80}+ \}                                 # {name} {0:.2f} ${x} #{x}
    | \$ [a-z_] \w*+                                             # $name
    | % \( [\w.]{1,80}+ \) [-+#0]* \d* (?:\.\d+)? [a-z]          # %(name)s
    | (?<![\d%]) % (?:\d+\$)? [-+#0]* \d* (?:\.\d+)? (?:hh?|ll?|[Lqjzt])? [diouxefgcrsap@] # %s
    | %%
    | (?<![\d%]) % [a-z_] \w*+ %                                    # %NAME%
    | (?<!\w) __ [a-z0-9] (?:_?[a-z0-9])*+ __                    # __NAME__
    """,
    re.VERBOSE | re.IGNORECASE,
)
_URL_CHARACTER = rf"""[^\s<>"«»“”、。，；：！？（）【】「」{TAG_MARK}]"""
_DOMAIN = r"(?:com|org|net|edu|gov|info|io|dev|app|eu)"
_ADDRESS = re.compile(
    rf"""
      (?<![a-z0-9+.-]) (?: [a-z][a-z0-9+.-]{{0,30}} :// | mailto: | www\. ) {_URL_CHARACTER}++
    | (?<![\w.+-]) [\w.+-]{{1,64}}+ @ [\w-]{{1,63}}+ (?: \. [\w-]{{1,63}}+ )++
    | (?<![\w.@-]) (?: [a-z0-9-]{{1,63}} \. ){{1,5}} {_DOMAIN} (?![\w-])
      (?: [/?\#] {_URL_CHARACTER}*+ )?
    """,
    re.VERBOSE | re.IGNORECASE,
)
# Signs after an address that belong to the sentence; a bracket only if none was opened in it.
_AFTER_ADDRESS = ".,;:!?'’…*"
_BRACKETS = {")": "(", "]": "[", "}": "{"}

_MORE_DIGITS = r"[.,:/×-] \d++"
_GROUPS = r"\d{1,3} (?: [ '’\u00a0\u202f] \d{3} )++ (?!\d)"
_DIGITS = rf"[-+−±]? (?: {_GROUPS} | \d++ ) (?: {_MORE_DIGITS} )*+"
_CURRENCY = r"(?: (?: \b[A-Z]{1,3} )? [$€£¥₹₽₩] | \b (?: USD|EUR|GBP|JPY|CHF|CAD|AUD|CNY ) )"
_SPACE = r"[ \u00a0\u202f]?"
_UNIT = r"""(?:
      [%‰€£¥₹₽₩$] | ° [CF]? | ℃ | ℉
    | (?: USD|EUR|GBP|JPY|CHF|CAD|AUD|CNY
        | [kcmµn]?m [²³]? (?: / (?:s|h|min) )? | km/h | mph | kph | rpm
        | [kmµ]?g | lbs? | oz | ft | yd | [mcd]?[lL]
        | [kKMGTP]i?[bB] | [kMG]bps | [kMG]?Hz | [kMG]?Wh? | [km]?V | mA | [km]?Pa | k?J | kcal
        | dB | px | pt | dpi | h | min | [mµn]s | s
      ) (?! [\w'’] )
    )"""
_NUMBER = re.compile(
    rf"""
      {_CURRENCY} {_SPACE} {_DIGITS} (?: {_SPACE} {_UNIT} )?            # $3.50
    | (?<![\w.,]) {_DIGITS} {_SPACE} {_UNIT}                            # 3.5 km
    | (?<![\w.,]) [-+−±]? (?: {_GROUPS} | \d++ (?= {_MORE_DIGITS} ) )
      (?: {_MORE_DIGITS} )*+                                            # 12/05/2024, 10:30, 1 000
    | (?<![\w.,]) [-+−±]? \d{{2,}}+ (?! \w | {_MORE_DIGITS} )          # 42
    """,
    re.VERBOSE,
)
_PATTERNS = {Kind.PLACEHOLDER: _PLACEHOLDER, Kind.ADDRESS: _ADDRESS, Kind.NUMBER: _NUMBER}


def find(kind: Kind, view: str) -> Iterator[Span]:
    """Yield the spans of a kind that has a pattern, in order."""
    for match in find_all(_PATTERNS[kind], view):
        start, end = match.span()
        yield start, _end_of_address(view, start, end) if kind is Kind.ADDRESS else end


def find_terms(glossary: Mapping[str, str], view: str) -> Iterator[tuple[Span, str]]:
    """Yield the whole words that are a source term, with their target term; the longest wins.

    Letters are compared as they are, but a term may begin a sentence: `engine` is found as `Engine`
    too, and its target term then begins with a capital.
    """
    terms = _with_capitals(glossary)
    if not terms:
        return
    by_first: dict[str, list[str]] = {}
    for term in sorted(terms, key=len, reverse=True):
        by_first.setdefault(term[0], []).append(term)
    first = re.compile("|".join(map(re.escape, by_first)))
    position = 0
    while match := first.search(view, position):
        start = match.start()
        found = next((term for term in by_first[match[0]] if _is_at(term, view, start)), "")
        position = start + len(found or match[0])
        if found:
            yield (start, position), terms[found]


def _with_capitals(glossary: Mapping[str, str]) -> dict[str, str]:
    terms = {}
    for source, target in glossary.items():
        terms[source[0].upper() + source[1:]] = target[:1].upper() + target[1:]
    return terms | dict(glossary)


def _is_at(term: str, view: str, start: int) -> bool:
    end = start + len(term)
    return (
        view.startswith(term, start)
        and not (start > 0 and joined(view[start - 1], term[0]))
        and not (end < len(view) and joined(term[-1], view[end]))
    )


def _end_of_address(view: str, start: int, end: int) -> int:
    while end > start:
        last = view[end - 1]
        bracket = _BRACKETS.get(last)
        unopened = bracket is not None and view.count(bracket, start, end) < view.count(
            last, start, end
        )
        if last not in _AFTER_ADDRESS and not unopened:
            break
        end -= 1
    return end
