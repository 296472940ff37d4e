"""A file of many lines, a plan for it, and a client that goes away on the way."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from service.client.bulk.calls import Retries
from service.client.bulk.formats import TextFormat
from service.client.bulk.plan import Plan
from service.client.bulk.run import CHECKPOINT_LINES, run
from service.errors import Unavailable
from service.pb import translation_pb2 as pb
from tests.bulk.files import put
from tests.bulk.shouting import Shouting
from tests.bulk.told import Told

NUM_LINES = 3 * CHECKPOINT_LINES + 100
LINES = [f"line {number} says {'so ' * (number % 7)}\n".encode() for number in range(NUM_LINES)]
TEXT = b"".join(LINES)
ONCE = Retries(count=0)


class Stopping:
    """Lets some requests through, and then none."""

    def __init__(self, num_requests: int) -> None:
        self.left = num_requests

    def __call__(self, texts: Sequence[str]) -> None:
        self.left -= 1
        if self.left < 0:
            raise Unavailable("away")


def plan_of(folder: Path, text: bytes = TEXT, suffix: str = "", **changes: object) -> Plan:
    source = put(folder / f"in.txt{suffix}", text)
    plan = Plan(
        source=source,
        output=folder / f"out.txt{suffix}",
        format=TextFormat(),
        request=pb.TranslateRequest(),
        at_once=2,
    )
    return replace(plan, **changes)  # type: ignore[arg-type]


def stopped(plan: Plan, num_requests: int) -> None:
    with pytest.raises(Unavailable):
        run(plan, Shouting(Stopping(num_requests)), Told(), ONCE)
