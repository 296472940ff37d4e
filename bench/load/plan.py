"""What is asked, and when: all of it decided, and serialised, before the first call."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, cycle, islice, repeat

from service.pb import translation_pb2 as pb

MAX_CALLS = 1_000_000
"""More than any measurement needs; a typo in a rate should not become an attack."""
_LARGE_CALLS = (1, 1, 1, 4, 16)
_BEAM_SIZES = (1, 1, 1, 4)
_ATTENTION_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Call:
    """One serialised request; `due` is in seconds after the start."""

    due: float
    request: bytes
    num_contents: int


@dataclass(frozen=True, slots=True)
class Traffic:
    """What callers ask.

    per_call: sentences in a call. models: one is taken at random; none is the server's default.
    mixed: instead calls of several sizes and beam widths, some with attention.
    """

    sentences: Sequence[str]
    per_call: int = 1
    models: Sequence[str] = ("",)
    mixed: bool = False

    def calls(self, dues: Sequence[float], seed: int = 0) -> list[Call]:
        """One call for each time; the same for the same seed."""
        random_ = random.Random(seed)
        sentences = cycle(random_.sample(self.sentences, len(self.sentences)))
        return [self._call(due, sentences, random_) for due in dues]

    def _call(self, due: float, sentences: Iterator[str], random_: random.Random) -> Call:
        size = random_.choice(_LARGE_CALLS) if self.mixed else self.per_call
        request = pb.TranslateRequest(
            contents=islice(sentences, size), model=random_.choice(self.models)
        )
        if self.mixed:
            request.options.beam_size = random_.choice(_BEAM_SIZES)
            request.include_attention = random_.random() < _ATTENTION_SHARE
        return Call(due, request.SerializeToString(), size)


def poisson_arrivals(rate: float, seconds: float, seed: int = 0) -> list[float]:
    """Times of independent callers, `rate` a second on average, for that many seconds.

    Raises ValueError if that would be none, or more than `MAX_CALLS`.
    """
    if not rate > 0:
        raise ValueError(f"a rate of {rate:g} calls/s is no load")
    if rate * seconds > MAX_CALLS:
        raise ValueError(f"{rate:g} calls/s for {seconds:g} s are more than {MAX_CALLS:,} calls")
    random_ = random.Random(seed)
    gaps = (random_.expovariate(rate) for _ in repeat(None))
    arrivals = []
    for time in accumulate(gaps):
        if time >= seconds:
            break
        arrivals.append(time)
    return arrivals
