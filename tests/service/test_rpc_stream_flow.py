"""A stream in time: what is in flight is bounded, and whatever ends it leaves nothing behind."""

import json
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Thread

import grpc
import pytest

from service.bundle import read_bundle
from service.client import Client
from service.config import ServerConfig
from service.pb import translation_pb2 as pb
from service.rpc import RequestLimits
from service.rpc.streaming.window import Window
from tests.installing import install, version_of
from tests.running_server import RunningServer, eventually, running_server
from tests.streams import TEXT, said, segment, settings, talk

NAME = "tiny-bahdanau"
# As long as can be, so that a stream of them is in flight for a while.
LASTING = {"beam_size": 32, "max_length": 80, "max_length_ratio": 0}


def ended(server: RunningServer, code: str) -> float:
    """How many streams ended with a code, so far."""
    labels = {"grpc_method": "TranslateStream", "grpc_type": "bidi_stream", "grpc_code": code}
    return server.sample("grpc_server_handled_total", **labels)


def settled(read: Callable[[], int]) -> int:
    """What a number is when it has stayed the same for a while."""
    values = deque[int](maxlen=30)

    def is_settled() -> bool:
        values.append(read())
        return values.count(values[0]) == 30

    eventually(is_settled)
    return values[0]


def test_a_client_that_does_not_read_is_not_read_from(server: RunningServer) -> None:
    # Nothing to translate, so that only the transport is in the way.
    large, number = " " * 60_000, 400
    with talk(server.address) as talking:
        talking.send(settings(), *(segment(id, large) for id in range(number)))
        assert 1 < settled(lambda: talking.num_sent) < number
        talking.half_close()
        assert {int(answer.id) for answer in talking.rest()} == set(range(number))
        assert talking.code() is grpc.StatusCode.OK


@pytest.mark.parametrize("limit", ["max_contents", "max_characters", "max_message_bytes"])
def test_the_window_closes_at_each_limit_of_a_request_and_opens_below_it(limit: str) -> None:
    window = Window(RequestLimits.of(ServerConfig(**{limit: 1024})))  # type: ignore[arg-type]
    sizes = {"max_contents": (1, 1), "max_characters": (1024, 0), "max_message_bytes": (0, 1025)}
    number = 1024 if limit == "max_contents" else 1
    characters, num_bytes = sizes[limit]
    for _ in range(number):
        assert window.is_open
        window.enter(characters, num_bytes // 2)
        window.answer(num_bytes - num_bytes // 2)
    assert not window.is_open
    window.leave(characters, num_bytes)
    assert window.is_open


def test_a_stream_waits_where_a_request_would_be_refused(models: Path) -> None:
    flags = ("--max-queue-sentences=2", "--max-rows=4", "--workers=1")
    with running_server(models, *flags) as server:
        segments = [segment(number, f"{TEXT} {TEXT}") for number in range(50)]
        answers, code, _ = said(server.address, settings(model=NAME), *segments)
        assert code is grpc.StatusCode.OK
        assert all(answer.HasField("translation") for answer in answers) and len(answers) == 50
        assert server.sample("nmt_refused_sentences_total") == 0


def test_cancelling_a_stream_frees_its_rows(server: RunningServer) -> None:
    before = ended(server, "Canceled")
    lost = server.sample("nmt_lost_sentences_total", reason="cancelled")
    with talk(server.address) as talking:
        talking.send(settings(model=NAME, options=LASTING), *map(segment, range(200)))
        eventually(lambda: server.sample("nmt_rows_in_flight", model=NAME))
        talking.call.cancel()
        eventually(lambda: ended(server, "Canceled") == before + 1)
        eventually(lambda: not server.sample("nmt_rows_in_flight", model=NAME))
    assert server.sample("nmt_waiting_sentences", model=NAME) == 0
    assert server.sample("nmt_lost_sentences_total", reason="cancelled") > lost


def test_the_deadline_of_the_rpc_ends_a_stream(server: RunningServer) -> None:
    before = ended(server, "DeadlineExceeded")
    with talk(server.address, timeout=0.5) as talking:
        talking.send(settings(), segment("one"))
        assert [answer.id for answer in talking.rest()] == ["one"]
        assert talking.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    eventually(lambda: ended(server, "DeadlineExceeded") == before + 1)


def test_without_a_deadline_each_segment_has_that_of_the_server(models: Path) -> None:
    with running_server(models, "--default-deadline-seconds=0.001") as server:
        long = [segment(number, f"{TEXT} " * 100) for number in range(2)]
        answers, code, _ = said(server.address, settings(model=NAME), *long, segment("empty", ""))
    assert code is grpc.StatusCode.OK
    exceeded = grpc.StatusCode.DEADLINE_EXCEEDED.value[0]
    assert {answer.id: answer.error.code for answer in answers} == {
        "0": exceeded,
        "1": exceeded,
        "empty": 0,
    }


@contextmanager
def stopping_server(models: Path, folder: Path) -> Iterator[RunningServer]:
    """A server that would drain for an hour, and says at its end whether all was answered."""
    flags = ("--drain-seconds=3600", "--log-format=json", "--request-log=all")
    with running_server(models, *flags, log_file=folder / "log") as server:
        yield server
        assert server.process.wait() == 0
        *_, last = map(json.loads, server.log().splitlines())
        assert last["message"] == "stopped; everything that was accepted is answered"


def test_a_stop_ends_a_stream_that_is_open_and_silent(models: Path, tmp_path: Path) -> None:
    with stopping_server(models, tmp_path) as server, talk(server.address) as talking:
        with talk(server.address) as without_settings:
            talking.send(settings(model=NAME), segment("one"))
            assert talking.read().id == "one"
            server.process.terminate()
            for each in (talking, without_settings):
                assert (each.rest(), each.code()) == ([], grpc.StatusCode.UNAVAILABLE)
            assert "send what has no answer again" in talking.call.details()


def test_a_stop_has_a_busy_stream_answered_what_was_read_of_it(
    models: Path, tmp_path: Path
) -> None:
    with stopping_server(models, tmp_path) as server, talk(server.address) as talking:
        answers = list[pb.TranslateStreamResponse]()
        reader = Thread(target=lambda: answers.extend(talking.rest()))
        talking.send(settings(model=NAME))
        reader.start()
        for number in count():
            talking.send(segment(number))
            if number == 50:
                server.process.terminate()
            if not reader.is_alive():
                break
            eventually(lambda: talking.num_sent > number or not reader.is_alive())  # noqa: B023
        assert talking.code() is grpc.StatusCode.UNAVAILABLE
        numbers = [int(answer.id) for answer in answers]
        # Nothing twice, and nothing left out but at the end.
        assert sorted(numbers) == list(range(len(numbers)))
        assert all(answer.HasField("translation") for answer in answers)
    [line] = [line for line in map(json.loads, server.log().splitlines()) if "method" in line]
    assert (line["code"], line["texts"]) == ("UNAVAILABLE", len(answers))


def test_a_stream_goes_over_to_a_new_version_unless_one_is_named(
    models: Path, tmp_path: Path
) -> None:
    bundle = read_bundle(models / "bahdanau")
    install(bundle, tmp_path / "it-1")
    with running_server(tmp_path, "--watch-seconds=0.05") as server:
        with talk(server.address) as newest, talk(server.address) as pinned:
            newest.send(settings(model=NAME), segment(1))
            pinned.send(settings(model=NAME, model_version="1"), segment(1))
            assert newest.read().translation.model_version == "1"
            assert pinned.read().translation.model_version == "1"
            version_of(bundle, tmp_path / "it-2", "2")
            with Client(server.address) as client:
                eventually(lambda: len(client.list_models().models) == 2)
            newest.send(segment(2))
            pinned.send(segment(2))
            assert newest.read().translation.model_version == "2"
            assert pinned.read().translation.model_version == "1"


def test_a_stream_has_one_line_in_the_log_with_the_counts_of_all_its_segments(
    models: Path, tmp_path: Path
) -> None:
    flags = ("--log-format=json", "--request-log=all", "--log-texts=on")
    with running_server(models, *flags, log_file=tmp_path / "log") as server:
        texts = [TEXT, "A man.", "12:30"]
        bad = segment("bad", options={"beam_size": 0})
        said(server.address, settings(model=NAME), *map(segment, "123", texts), bad)
        lines = [line for line in map(json.loads, server.log().splitlines()) if "method" in line]
    [line] = lines
    assert line["method"].endswith("/TranslateStream") and line["code"] == "OK"
    assert (line["texts"], line["failed_texts"], line["sentences"]) == (4, 1, 2)
    assert line["characters"] == sum(map(len, [*texts, TEXT]))
    assert line["model"] == f"{NAME}@1"
    assert sorted(line["contents"]) == sorted([*texts, TEXT])


def test_a_stream_without_a_token_is_refused_before_it_is_read(
    models: Path, tmp_path: Path
) -> None:
    (tmp_path / "tokens").write_text("a-token-of-the-test-only\n")
    with running_server(models, f"--tokens-file={tmp_path / 'tokens'}") as server:
        answers, code, _ = said(server.address, settings(), segment(1))
    assert (answers, code) == ([], grpc.StatusCode.UNAUTHENTICATED)
