"""What a caller may ask to be kept as it is."""

import enum
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property

from service.errors import InvalidArgument
from service.text.protect.terms import Terms
from service.text.rewriting import Span


class Kind(enum.Enum):
    """Why a part of a text is protected."""

    PLACEHOLDER = "placeholder"  # {name}, {{name}}, ${x}, $x, %(n)s, %s, %d, %NAME%
    ADDRESS = "address"  # URL, host name, e-mail address, @name
    NUMBER = "number"  # price, measure, date, time, any number of two digits or more
    TAG = "tag"  # XML or HTML: goes where the translation of its content is
    SPAN = "span"  # given by the caller
    TERM = "term"  # in the caller's glossary: comes out as the target term
    UNKNOWN = "unknown"  # has characters that the model can't spell


FOUND_KINDS = frozenset([Kind.PLACEHOLDER, Kind.ADDRESS, Kind.NUMBER, Kind.TAG])


@dataclass(frozen=True)
class Protection:
    """What is protected in the texts of a request.

    kinds: those of FOUND_KINDS to look for; ADDRESS always is, and TAG in HTML.
    html: texts are HTML: entities stand for characters, white space is folded, code is kept.
    glossary: source term -> target term, both plain text. Whole words only, in that case; a term
        that begins in lower case is also found with a capital.
    Raises InvalidArgument.
    """

    kinds: frozenset[Kind] = frozenset()
    html: bool = False
    glossary: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if unknown := self.kinds - FOUND_KINDS:
            names = ", ".join(sorted(kind.value for kind in unknown))
            raise InvalidArgument(f"protect has {names}, which is no pattern to look for")
        for source, target in self.glossary.items():
            if not source.strip() or source != source.strip():
                raise InvalidArgument(f"glossary has the source term {source!r}; send bare words")
            if not target.strip() or target != target.strip():
                raise InvalidArgument(f"glossary has the target term {target!r}; send bare words")

    def __bool__(self) -> bool:
        """Whether more is protected than addresses."""
        return self._is_more

    @cached_property
    def _is_more(self) -> bool:
        return bool(self.kinds - {Kind.ADDRESS} or self.html or self.glossary)

    @property
    def tags(self) -> bool:
        return self.html or Kind.TAG in self.kinds

    @property
    def patterns(self) -> Set[Kind]:
        """The kinds that are found by their form."""
        return (self.kinds | {Kind.ADDRESS}) - {Kind.TAG}

    @cached_property
    def terms(self) -> Terms:
        """The glossary, made ready once for all texts of the request."""
        return Terms(self.glossary)


def check_spans(spans: Sequence[Span], length: int) -> None:
    """Raises InvalidArgument if caller-given spans are empty or leave a text of that length."""
    for start, end in spans:
        if not 0 <= start < end <= length:
            raise InvalidArgument(
                f"protected span {start}:{end} is empty or not in the text, which has {length} "
                "code points"
            )
