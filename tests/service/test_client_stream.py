"""The client's side of a stream, and what the page on streams shows."""

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from service.client import Client
from service.errors import InvalidArgument, UnknownModel
from service.pb import translation_pb2 as pb
from tests.running_server import RunningServer, eventually

TEXT = "Two young women are walking."
PAGE = Path(__file__).parents[2] / "docs" / "streaming.md"


def segments(number: int, content: str = TEXT) -> Iterator[pb.Segment]:
    return (pb.Segment(id=str(index), content=content) for index in range(number))


def test_every_segment_comes_back_with_its_id_and_the_translation_it_has_alone(
    client: Client,
) -> None:
    request = pb.TranslateRequest(contents=[TEXT], model="tiny-bahdanau")
    [alone] = client.translate(request).translations
    settings = pb.TranslateStreamSettings(model="tiny-bahdanau")
    answers = dict(client.translate_stream(segments(20), settings))
    assert answers == {str(index): alone for index in range(20)}


def test_a_segment_that_failed_comes_back_as_the_error(client: Client) -> None:
    bad = pb.Segment(id="bad", content=TEXT, options=pb.DecodingOptions(beam_size=0))
    answers = dict(client.translate_stream([bad, *segments(1)]))
    assert isinstance(answers["bad"], InvalidArgument)
    assert str(answers["bad"]).startswith("beam_size is 0")
    assert isinstance(answers["0"], pb.Translation)


def test_what_ends_the_stream_is_raised(client: Client) -> None:
    with pytest.raises(UnknownModel, match="'none' is not served"):
        list(client.translate_stream(segments(3), pb.TranslateStreamSettings(model="none")))


def test_segments_are_taken_only_so_far_ahead_of_the_answers(client: Client) -> None:
    taken = 0

    def counted() -> Iterator[pb.Segment]:
        nonlocal taken
        for segment in segments(50):
            taken += 1
            yield segment

    answered = 0
    for _ in client.translate_stream(counted(), max_unanswered=3):
        answered += 1
        assert taken <= answered + 3
    assert answered == 50


def test_a_fault_of_the_segments_is_raised_after_the_answers_to_those_before(
    client: Client,
) -> None:
    def faulty() -> Iterator[pb.Segment]:
        yield from segments(3)
        raise OSError("the file ends")

    answers = client.translate_stream(faulty())
    assert {next(answers)[0] for _ in range(3)} == {"0", "1", "2"}
    with pytest.raises(OSError, match="the file ends"):
        next(answers)


def test_leaving_the_loop_ends_the_stream_and_takes_no_more_segments(
    client: Client, server: RunningServer
) -> None:
    ended = Event()

    def endless() -> Iterator[pb.Segment]:
        try:
            while True:
                yield from segments(10)
        finally:
            ended.set()

    def cancelled() -> float:
        labels = {"grpc_method": "TranslateStream", "grpc_code": "Canceled"}
        return server.sample("grpc_server_handled_total", **labels)

    before = cancelled()
    answers = client.translate_stream(endless())
    assert isinstance(next(answers)[1], pb.Translation)
    answers.close()
    eventually(lambda: cancelled() == before + 1)
    eventually(ended.is_set)


def test_a_stream_that_could_send_nothing_is_refused(client: Client) -> None:
    with pytest.raises(InvalidArgument, match="max_unanswered is 0; it must be at least 1"):
        client.translate_stream(segments(1), max_unanswered=0)


@pytest.mark.parametrize("number", [0, 1])
def test_the_examples_of_the_page_do_what_they_say(number: int, server: RunningServer) -> None:
    examples = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(examples) == 2
    code = examples[number].replace("localhost:50051", server.address)
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(compile(code, PAGE.name, "exec"), {})
    lines = output.getvalue().splitlines()
    assert sorted(line.split()[0] for line in lines) == ["1", "2", "3"]
