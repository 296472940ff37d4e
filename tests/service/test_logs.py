"""Lines of the log: what they hold, for people and for programs, and what they never hold."""

import json
import logging
import subprocess
import sys
from contextvars import copy_context
from datetime import UTC, datetime

import pytest

from service.logs import RequestLog, RequestRecord, current_request, request_id
from service.logs.formats import JsonFormatter, TextFormatter
from service.logs.repeats import Repeats
from tests.gate import Clock

METHOD = "nmt.v1.TranslationService/Translate"


def a_record(message: str = "a %s", *arguments: object, **more: object) -> logging.LogRecord:
    values = {"name": "service.x", "levelname": "INFO", "msg": message, "args": arguments}
    return logging.makeLogRecord({**values, "created": 1.5, **more})


def an_exception(text: str) -> dict[str, object]:
    try:
        try:
            raise KeyError(text)
        except KeyError as cause:
            raise ValueError(text) from cause
    except ValueError as error:
        return {"exc_info": (type(error), error, error.__traceback__)}


def as_json(record: logging.LogRecord, log_texts: bool = False) -> dict[str, object]:
    line: dict[str, object] = json.loads(JsonFormatter(log_texts).format(record))
    return line


def while_serving(record: RequestRecord, formatter: logging.Formatter, **more: object) -> str:
    """A line of code that serves an rpc, in a context of its own as gRPC's tasks have it."""

    def line() -> str:
        record.begin()
        return formatter.format(a_record("hello", **more))

    return copy_context().run(line)


def test_a_line_of_json_says_when_how_severe_who_and_what() -> None:
    line = as_json(a_record("a %s", "b", fields={"seconds": 0.5}))
    assert line == {
        "time": "1970-01-01T00:00:01.500Z",
        "level": "INFO",
        "logger": "service.x",
        "message": "a b",
        "seconds": 0.5,
    }
    assert datetime.fromisoformat(str(line["time"])) == datetime.fromtimestamp(1.5, UTC)


def test_a_line_of_json_is_one_line_whatever_is_in_it() -> None:
    line = JsonFormatter(False).format(a_record("a\nb", **an_exception("c\nd")))
    assert "\n" not in line
    exception = json.loads(line)["exception"]
    assert exception.startswith("Traceback") and exception.endswith("ValueError: c\nd")


def test_a_line_of_text_ends_with_its_fields_and_quotes_what_could_forge_others() -> None:
    fields = {"model": "m", "reason": 'a "b"\nx=y', "seconds": 0.25, "none": ""}
    line = TextFormatter(False).format(a_record("hello", fields=fields))
    assert line == (
        "1970-01-01T00:00:01.500Z INFO service.x: hello model=m "
        r'reason="a \"b\"\nx=y" seconds=0.25 none=""'
    )


def test_what_serves_a_request_logs_its_id_and_its_trace() -> None:
    line = while_serving(RequestRecord("abc", trace_id="f" * 32), TextFormatter(False))
    assert line.endswith(f"hello request_id=abc trace_id={'f' * 32}")
    assert "request_id" not in as_json(a_record())


@pytest.mark.parametrize("formatter", [JsonFormatter, TextFormatter])
def test_an_exception_of_a_request_quotes_no_text_unless_asked(
    formatter: type[JsonFormatter],
) -> None:
    record, exception = RequestRecord("abc"), an_exception("a secret")
    line = while_serving(record, formatter(False), **exception)
    assert "a secret" not in line and "KeyError" in line and "ValueError" in line
    assert "an_exception" in line  # where it happened
    assert "a secret" in while_serving(record, formatter(True), **exception)


@pytest.mark.parametrize("given", ["abc-123", "x" * 128, "!~"])
def test_a_sane_request_id_of_the_caller_is_kept(given: str) -> None:
    assert request_id([("other", "a"), ("x-request-id", given)]) == given


@pytest.mark.parametrize("given", ["", "x" * 129, "a b", "a\nb", "é", b"bytes"])
def test_any_other_is_replaced_by_a_new_one(given: str | bytes) -> None:
    made = {request_id([("x-request-id", given)]) for _ in range(10)}
    assert len(made) == 10 and given not in made


def test_outside_of_a_request_its_record_is_nobodys() -> None:
    current_request().contents = ["a text"]
    assert current_request().contents == ()


@pytest.mark.parametrize(
    ("which", "logged"),
    [("off", []), ("failed", ["INTERNAL"]), ("all", ["OK", "INTERNAL"])],
)
def test_the_log_has_the_requests_that_were_asked_for(
    which: str, logged: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    for code in ("OK", "INTERNAL"):
        RequestLog(which).ended(RequestRecord(), METHOD, code, 0.5)
    assert [record.__dict__["fields"]["code"] for record in caplog.records] == logged


def test_a_share_of_the_successes_is_logged_and_every_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    log, records = RequestLog("all", rate=0.25), [RequestRecord(str(n)) for n in range(1000)]
    for record in records:
        log.ended(record, METHOD, "OK", 0.5)
    chosen = [record.__dict__["fields"]["request_id"] for record in caplog.records]
    assert 200 < len(chosen) < 300
    caplog.clear()
    for record in records:
        log.ended(record, METHOD, "OK", 0.5)
        log.ended(record, METHOD, "UNAVAILABLE", 0.5)
    again = [record.__dict__["fields"] for record in caplog.records]
    assert [each["request_id"] for each in again if each["code"] == "OK"] == chosen
    assert len(again) == len(chosen) + 1000


def test_of_messages_that_repeat_one_a_second_is_told_with_the_number_left_out() -> None:
    clock = Clock()
    repeats = Repeats(clock)
    full = [f"{number} wait, {number / 10} s" for number in (7, 12, 1e22)]
    assert [repeats.told(message) for message in full] == [0, None, None]
    assert repeats.told("another reason") == 0
    clock.now = 0.9
    assert repeats.told(full[0]) is None
    clock.now = 1.0
    assert [repeats.told(message) for message in full] == [3, None, None]
    clock.now = 9.0
    assert [repeats.told("another reason"), repeats.told(full[1])] == [0, 2]


@pytest.mark.parametrize("code", ["RESOURCE_EXHAUSTED", "UNAVAILABLE", "UNAUTHENTICATED"])
def test_those_turned_away_for_one_reason_have_a_line_a_second_unless_all_are_wanted(
    code: str, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    log = RequestLog("failed", repeats=Repeats(clock))
    for number in range(100):
        clock.now = number / 40
        log.ended(RequestRecord(), METHOD, code, 0.001, f"{number} sentences are waiting")
    told = [record.__dict__["fields"].get("left_out") for record in caplog.records]
    assert told == [None, 39, 39]
    caplog.clear()
    for which, reason in (("failed", "another"), ("all", "another"), ("all", "another")):
        RequestLog(which, repeats=log.repeats).ended(RequestRecord(), METHOD, code, 0.5, reason)
    assert len(caplog.records) == 3


def test_every_other_failure_has_its_line(caplog: pytest.LogCaptureFixture) -> None:
    log = RequestLog("failed")
    for code in ("INTERNAL", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED") * 2:
        log.ended(RequestRecord(), METHOD, code, 0.001, "the same")
    assert len(caplog.records) == 6


def test_the_line_of_a_request_counts_its_texts_and_has_them_only_where_asked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    record = RequestRecord("abc", ["A secret.", "Two."], ["m@1"], 2, 5, 6)
    RequestLog("all").ended(record, METHOD, "OK", 0.1234567)
    RequestLog("all", log_texts=True).ended(record, METHOD, "OK", 0.5)
    fields, with_texts = (each.__dict__["fields"] for each in caplog.records)
    assert fields == {
        "request_id": "abc",
        "method": METHOD,
        "code": "OK",
        "seconds": 0.123457,
        "model": "m@1",
        "texts": 2,
        "characters": 13,
        "sentences": 2,
        "source_tokens": 5,
        "target_tokens": 6,
    }
    assert with_texts["contents"] == ["A secret.", "Two."]


def test_texts_are_logged_to_a_length_that_a_line_can_have(
    caplog: pytest.LogCaptureFixture,
) -> None:
    record = RequestRecord("abc", ["x" * 1500] * 3)
    RequestLog(log_texts=True).ended(record, METHOD, "INTERNAL", 0.5)
    [line] = caplog.records
    assert [len(text) for text in line.__dict__["fields"]["contents"]] == [1500, 500]


@pytest.mark.parametrize("format", ["text", "json"])
def test_logging_goes_to_stderr_from_its_level_on(format: str) -> None:
    code = (
        "import logging; from service.logs import set_up_logging;"
        f"set_up_logging('warning', {format!r});"
        "logging.info('not this'); logging.warning('but this')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    [line] = done.stderr.splitlines()
    assert "but this" in line and not done.stdout
    assert line.startswith("{") == (format == "json")


@pytest.mark.parametrize("format", ["text", "json"])
def test_what_is_said_is_on_its_stream_unless_the_log_is_for_programs(format: str) -> None:
    code = (
        "import sys; from service.logs import say, set_up_logging;"
        f"set_up_logging('info', {format!r}); say('100% so', sys.stdout)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    if format == "text":
        assert (done.stdout, done.stderr) == ("100% so\n", "")
    else:
        assert done.stdout == "" and json.loads(done.stderr)["message"] == "100% so"
