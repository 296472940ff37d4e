"""A stream in this process: what a server's would be, without one."""

from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from service.client import Client
from service.client.local import LocalClient
from service.errors import DeadlineExceeded, InvalidArgument, Unavailable, UnknownModel
from service.pb import translation_pb2 as pb
from tests.running_server import eventually

TEXTS = ["Two young women are walking.", "", "A man. 🙂 me@a.org!", "A MAN", "A dog. " * 30]
SETTINGS = pb.TranslateStreamSettings(model="tiny-transformer", include_attention=True)


@pytest.fixture(scope="module")
def local(models: Path) -> Iterator[LocalClient]:
    with LocalClient(models) as client:
        yield client


def segments(texts: list[str]) -> Iterator[pb.Segment]:
    return (pb.Segment(id=str(index), content=text) for index, text in enumerate(texts))


def test_its_answers_are_those_of_a_server(local: LocalClient, client: Client) -> None:
    here = dict(local.translate_stream(segments(TEXTS), SETTINGS))
    assert here == dict(client.translate_stream(segments(TEXTS), SETTINGS))
    assert here.keys() == {str(index) for index in range(len(TEXTS))}


def test_it_is_as_long_as_its_segments_with_few_under_way(local: LocalClient) -> None:
    taken = answered = 0

    def counted() -> Iterator[pb.Segment]:
        nonlocal taken
        for each in segments(["A man."] * 50):
            taken += 1
            yield each

    for _ in local.translate_stream(counted(), SETTINGS, max_unanswered=3):
        answered += 1
        assert taken <= answered + 3
    assert answered == 50


def test_a_segment_that_failed_and_a_stream_that_did_say_why(local: LocalClient) -> None:
    bad = pb.Segment(id="bad", content="A man.", options=pb.DecodingOptions(beam_size=0))
    [(_, fault)] = local.translate_stream([bad], SETTINGS)
    assert isinstance(fault, InvalidArgument) and str(fault).startswith("beam_size is 0")
    with pytest.raises(UnknownModel, match="'none' is not served"):
        [*local.translate_stream(segments(TEXTS), pb.TranslateStreamSettings(model="none"))]
    with pytest.raises(InvalidArgument, match="max_unanswered is -1; it must be at least 1"):
        local.translate_stream(segments(TEXTS), max_unanswered=-1)


@pytest.mark.parametrize("fault", [OSError("no more"), SystemExit(3), KeyboardInterrupt()])
def test_whatever_its_segments_raise_ends_it(local: LocalClient, fault: BaseException) -> None:
    def faulty() -> Iterator[pb.Segment]:
        yield from segments(["A man."])
        raise fault

    answers = local.translate_stream(faulty(), SETTINGS)
    assert isinstance(next(answers)[1], pb.Translation)
    with pytest.raises(type(fault)):
        next(answers)


def test_settings_of_another_kind_are_refused_and_not_waited_for(local: LocalClient) -> None:
    request: Any = pb.TranslateRequest(model="tiny-transformer")
    with pytest.raises(TypeError):
        next(local.translate_stream(segments(TEXTS), request))


def test_leaving_the_loop_takes_no_more_segments(local: LocalClient) -> None:
    ended = Event()

    def endless() -> Iterator[pb.Segment]:
        try:
            while True:
                yield from segments(TEXTS)
        finally:
            ended.set()

    answers = local.translate_stream(endless(), SETTINGS)
    assert isinstance(next(answers)[1], pb.Translation)
    answers.close()
    eventually(ended.is_set)


def test_its_deadline_is_that_of_the_whole_stream(local: LocalClient) -> None:
    never = Event()

    def waiting() -> Iterator[pb.Segment]:
        never.wait()
        yield from ()

    with pytest.raises(DeadlineExceeded, match="the deadline of the stream passed"):
        [*local.translate_stream(waiting(), SETTINGS, timeout_seconds=0.05)]
    never.set()


def test_a_client_that_is_closed_ends_its_streams(models: Path) -> None:
    more = Event()

    def waiting() -> Iterator[pb.Segment]:
        yield from segments(["A man."])
        more.wait()

    client = LocalClient(models)
    answers = client.translate_stream(waiting(), SETTINGS)
    assert isinstance(next(answers)[1], pb.Translation)
    client.close()
    with pytest.raises(Unavailable):
        next(answers)
    more.set()
