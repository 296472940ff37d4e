"""Texts through a client that refuses some and fails at times."""

from collections.abc import Sequence
from threading import Event

import pytest

from service.client.bulk.calls import Caller, Retries
from service.client.bulk.formats import LineFault
from service.errors import (
    DeadlineExceeded,
    InvalidArgument,
    QueueFull,
    TranslationError,
    Unauthenticated,
    Unavailable,
    UnknownModel,
    WorkerFailed,
)
from service.pb import translation_pb2 as pb
from tests.bulk.shouting import REFUSED, Shouting

TEXTS = [f"text {number}" for number in range(9)]
AT_ONCE = Retries(count=3, first_seconds=0.0)


def shown(outcomes: Sequence[pb.Translation | LineFault]) -> list[str]:
    return [
        f"fault: {outcome}" if isinstance(outcome, LineFault) else outcome.translated_text
        for outcome in outcomes
    ]


class Failing:
    """Fails `times`, or for ever."""

    def __init__(self, error: Exception, times: int = 1 << 30) -> None:
        self._error, self.left = error, times

    def __call__(self, texts: Sequence[str]) -> None:
        if self.left:
            self.left -= 1
            raise self._error


@pytest.mark.parametrize("places", [[0], [8], [3, 4], [*range(9)], []])
def test_texts_that_are_refused_cost_the_others_nothing(places: list[int]) -> None:
    texts = [REFUSED if place in places else text for place, text in enumerate(TEXTS)]
    fault = "fault: is too much; say something else"
    expected = [fault if text == REFUSED else text.upper() for text in texts]
    assert shown(Caller(Shouting(), pb.TranslateRequest()).outcomes(texts)) == expected


@pytest.mark.parametrize(
    "error", [DeadlineExceeded("slow"), WorkerFailed("hurt"), TranslationError("too large")]
)
def test_a_failure_that_names_no_text_is_narrowed_down_to_it(error: TranslationError) -> None:
    def fail(texts: Sequence[str]) -> None:
        if "text 5" in texts:
            raise error

    outcomes = Caller(Shouting(fail), pb.TranslateRequest()).outcomes(TEXTS)
    expected = [text.upper() for text in TEXTS]
    expected[5] = f"fault: {error}"
    assert shown(outcomes) == expected


@pytest.mark.parametrize(
    ("error", "may_pass"),
    [
        (DeadlineExceeded("slow"), True),
        (WorkerFailed("hurt"), True),
        (InvalidArgument("contents[0] is too much"), False),
        (InvalidArgument("the answer has more than 9 bytes"), False),
        (TranslationError("RESOURCE_EXHAUSTED: too large"), False),
    ],
)
def test_what_is_no_fault_of_a_text_may_pass(error: TranslationError, may_pass: bool) -> None:
    [fault] = Caller(Shouting(Failing(error)), pb.TranslateRequest()).outcomes(["text"])
    assert isinstance(fault, LineFault) and fault.may_pass is may_pass


def test_a_refusal_that_names_no_text_of_the_request_is_narrowed_down_too() -> None:
    error = InvalidArgument("contents[99] is too much")
    outcomes = Caller(Shouting(Failing(error)), pb.TranslateRequest()).outcomes(TEXTS)
    assert shown(outcomes) == ["fault: is too much"] * len(TEXTS)


@pytest.mark.parametrize("error", [Unavailable("away"), QueueFull("full", 0.0)])
def test_a_server_that_is_away_is_asked_again_some_times(error: TranslationError) -> None:
    for times, is_answered in ((3, True), (4, False)):
        client = Shouting(Failing(error, times))
        caller = Caller(client, pb.TranslateRequest(), AT_ONCE)
        if is_answered:
            assert shown(caller.outcomes(TEXTS)) == [text.upper() for text in TEXTS]
        else:
            with pytest.raises(type(error)):
                caller.outcomes(TEXTS)
        assert client.requests == [TEXTS] * 4


class Waits(Event):
    """Doesn't wait, and knows for how long it was to."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = list[float]()

    def wait(self, timeout: float | None = None) -> bool:
        self.seconds.append(timeout or 0.0)
        return self.is_set()


def test_a_server_that_says_how_long_to_wait_is_left_alone_for_that_long() -> None:
    waits = Waits()
    client = Shouting(Failing(QueueFull("full", 7.5), 3))
    Caller(client, pb.TranslateRequest(), Retries(3, 1.0), waits).outcomes(TEXTS)
    assert waits.seconds == [7.5] * 3


def test_pauses_grow_up_to_a_limit() -> None:
    waits = Waits()
    client = Shouting(Failing(Unavailable("away"), 6))
    Caller(client, pb.TranslateRequest(), Retries(6, 1.0, 8.0), waits).outcomes(TEXTS)
    for seconds, most in zip(waits.seconds, (1, 2, 4, 8, 8, 8), strict=True):
        assert most / 2 <= seconds <= most


def test_nothing_is_asked_again_once_it_was_stopped() -> None:
    stop = Event()
    stop.set()
    client = Shouting(Failing(Unavailable("away")))
    with pytest.raises(Unavailable):
        Caller(client, pb.TranslateRequest(), Retries(), stop).outcomes(TEXTS)
    assert client.requests == [TEXTS]


@pytest.mark.parametrize("error", [UnknownModel("none"), Unauthenticated("who?")])
def test_what_is_not_about_texts_is_raised_at_once(error: TranslationError) -> None:
    client = Shouting(Failing(error))
    with pytest.raises(type(error)):
        Caller(client, pb.TranslateRequest()).outcomes(TEXTS)
    assert client.requests == [TEXTS]
