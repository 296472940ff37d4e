"""What in a text is no language: placeholders, addresses, and numbers that mean an amount.

Works on a view of the text in which each tag is one TAG_MARK, which no pattern goes across. Every
pattern takes linear time for any text.
"""

import re
from collections.abc import Iterator

from service.text.checking import Check, go_on
from service.text.protect.options import Kind
from service.text.rewriting import Span
from service.text.searching import find_all

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
# Of host names without `www.`: those that are no English words.
_DOMAIN = r"(?:com|org|net|edu|gov|info|io|dev|app|eu|uk|ca|fr|de|ch|nl|br|cn|jp|ru)"
_ADDRESS = re.compile(
    rf"""
      (?<![a-z]) (?: [a-z][a-z0-9+.-]{{0,30}}+ :// | mailto: | www\. ) {_URL_CHARACTER}++
    | (?<![\w.+-]) [\w.+-]{{1,64}}+ @ [\w-]{{1,63}}+ (?: \. [\w-]{{1,63}}+ )++
    | (?<![\w@%]) (?<![\w%][.+-]) @ [a-z_] (?: [.-]? \w )*+        # @name
    | (?<![\w@-]) (?<!\w\.) (?: [a-z0-9-]{{1,63}} \. ){{1,5}} {_DOMAIN} (?![\w-])
      (?: [/?\#] {_URL_CHARACTER}*+ )?
    """,
    re.VERBOSE | re.IGNORECASE,
)
# What every address has, and few texts have.
_SIGN_OF_ADDRESS = re.compile(rf"@|://|www\.|mailto:|\.{_DOMAIN}(?![\w-])", re.IGNORECASE)
# Signs after an address that belong to the sentence; a bracket only if none was opened in it.
_AFTER_ADDRESS = ".,;:!?'’…*"
_BRACKETS = {")": "(", "]": "[", "}": "{"}
_MAY_BE_AFTER_ADDRESS = frozenset([*_AFTER_ADDRESS, *_BRACKETS])

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


def may_have_address(text: str, check: Check = go_on) -> bool:
    """Whether it is worth to look for addresses, which costs a plain sentence next to nothing."""
    # A search for one character takes some ten nanoseconds, and what has none of these is done.
    if text.find(".", 0, -1) < 0 and "@" not in text and ":" not in text:
        return False
    return any(find_all(_SIGN_OF_ADDRESS, text, check=check))


def find(kind: Kind, view: str, check: Check = go_on) -> Iterator[Span]:
    """Yield the spans of a kind that has a pattern, in order."""
    for match in find_all(_PATTERNS[kind], view, check=check):
        start, end = match.span()
        yield start, _end_of_address(view, start, end) if kind is Kind.ADDRESS else end


def _end_of_address(view: str, start: int, end: int) -> int:
    """Without the signs behind it, and brackets only if they are opened in it."""
    if view[end - 1] not in _MAY_BE_AFTER_ADDRESS:
        return end
    address = view[start:end]
    unopened = {
        closing: address.count(closing) - address.count(opening)
        for closing, opening in _BRACKETS.items()
    }
    while end > start:
        last = view[end - 1]
        if unopened.get(last, 0) > 0:
            unopened[last] -= 1
        elif last not in _AFTER_ADDRESS:
            break
        end -= 1
    return end
