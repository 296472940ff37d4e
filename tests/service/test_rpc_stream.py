"""`TranslateStream` on a real server: each segment gets the answer that it would get alone."""

import random
from typing import Any

import grpc
import pytest

from service.client import Client
from service.pb import translation_pb2 as pb
from tests.running_server import RunningServer
from tests.streams import TEXT, said, segment, settings, talk

OK, INVALID = grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT
TEXTS = [
    TEXT,
    "",
    " \n",
    "😀",
    "A man. The lazy dog, doesn't it?\n- Two dogs!\n",
    "A MAN IN A BLUE SHIRT",
    "Deux jeunes femmes marchent dans la rue.",
    f"{TEXT} " * 40,
]
ALL = {"include_attention": True, "include_token_scores": True, "include_alignment": True}


def unary(client: Client, content: str, **fields: Any) -> pb.Translation:
    [translation] = client.translate(pb.TranslateRequest(contents=[content], **fields)).translations
    return translation


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"model": "tiny-bahdanau", "model_version": "1", **ALL},
        {"options": {"beam_size": 4, "num_hypotheses": 3, "length_penalty": 0.5}, **ALL},
        {"include_attention": True, "include_attention_heads": True},
        {"options": {"sampling_temperature": 1.0, "sampling_seed": 7}},
        {"mime_type": "text/html", "text_options": {"glossary": [{"source": "A", "target": "B"}]}},
        {"text_options": {"split_sentences": False}, "source_language_code": "en-US"},
    ],
    ids=str,
)
def test_a_streamed_translation_is_that_of_translate(
    fields: dict[str, Any], client: Client, server: RunningServer
) -> None:
    segments = [segment(number, text) for number, text in enumerate(TEXTS)]
    random.Random(0).shuffle(segments)
    answers, code, _ = said(server.address, settings(**fields), *segments)
    assert code is OK
    streamed = {int(answer.id): answer.translation for answer in answers}
    assert streamed == {number: unary(client, text, **fields) for number, text in enumerate(TEXTS)}


def test_a_segment_says_for_itself_what_changes_from_text_to_text(
    client: Client, server: RunningServer
) -> None:
    own = {"prefix": "Two dogs", "beam_size": 2}
    answers, _, _ = said(
        server.address,
        settings(options={"beam_size": 4, "max_length": 20}),
        segment("as set"),
        segment("own", options=own),
        segment("kept", protected_spans=[{"begin": 4, "end": 9}]),
    )
    streamed = {answer.id: answer.translation for answer in answers}
    options = {"beam_size": 4, "max_length": 20}
    kept = {"protected_spans": [{"index": 0, "span": {"begin": 4, "end": 9}}]}
    assert streamed == {
        "as set": unary(client, TEXT, options=options),
        "own": unary(client, TEXT, options={**options, **own}),
        "kept": unary(client, TEXT, options=options, text_options=kept),
    }
    assert "young" in streamed["kept"].translated_text


def test_a_segment_is_answered_while_the_client_has_more_to_say(server: RunningServer) -> None:
    with talk(server.address) as talking:
        talking.send(settings())
        for id in ("one", "two", "two", ""):
            talking.send(segment(id))
            assert talking.read().id == id
        talking.half_close()
        assert (talking.rest(), talking.code()) == ([], OK)


def test_a_short_segment_overtakes_a_long_one(server: RunningServer) -> None:
    short = segment("short", "A man.", options={"max_length": 1})
    answers, _, _ = said(server.address, settings(), segment("long", f"{TEXT} " * 100), short)
    assert [answer.id for answer in answers] == ["short", "long"]


def test_a_stream_without_a_message_has_no_answer(server: RunningServer) -> None:
    assert said(server.address) == ([], OK, "")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"options": {"beam_size": 0}}, "beam_size is 0; it must be"),
        ({"options": {"max_length": 81}}, "max_length is 81, the model's limit is 80"),
        ({"content": "dog " * 80}, "content has a sentence of"),
        ({"protected_spans": [{"begin": 4, "end": 4}]}, "content: "),
        ({"content": "x" * ((1 << 20) + 1)}, "content has 1048577 characters"),
    ],
    ids=["option", "limit", "long", "span", "characters"],
)
def test_a_segment_that_fails_is_told_and_the_others_are_answered(
    fields: dict[str, Any], message: str, server: RunningServer
) -> None:
    whole = {"long_sentences": pb.LONG_SENTENCES_REFUSE}
    bad = segment("bad", **{"content": TEXT, **fields})
    answers, code, _ = said(
        server.address, settings(text_options=whole), segment("before"), bad, segment("after")
    )
    found = {answer.id: answer for answer in answers}
    assert (set(found), code) == ({"before", "bad", "after"}, OK)
    error = found["bad"].error
    assert error.code == INVALID.value[0] and error.message.startswith(message)
    assert all(found[id].HasField("translation") for id in ("before", "after"))


@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
        ({"model": "none"}, grpc.StatusCode.NOT_FOUND, "model 'none' is not served"),
        ({"target_language_code": "de"}, grpc.StatusCode.NOT_FOUND, "no model translates"),
        ({"model_version": "1"}, INVALID, "model_version is '1', but model is empty"),
        ({"options": {"beam_size": 65}}, INVALID, "beam_size is 65"),
        ({"options": {"max_length": 81}}, INVALID, "max_length is 81"),
        ({"options": {"suppress_sequences": ["x" * 9999]}}, INVALID, "suppress_sequences"),
        ({"mime_type": "text/xml"}, INVALID, "mime_type is 'text/xml'"),
        ({"text_options": {"long_sentences": 9}}, INVALID, "long_sentences is 9"),
        ({"text_options": {"protected_spans": [{}]}}, INVALID, "protected_spans name contents"),
    ],
    ids=str,
)
def test_settings_that_no_segment_can_have_end_the_stream_at_once(
    fields: dict[str, Any], code: grpc.StatusCode, message: str, server: RunningServer
) -> None:
    with talk(server.address) as talking:
        talking.send(settings(**fields))
        assert (talking.rest(), talking.code()) == ([], code)
        assert talking.call.details().startswith(message)


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        (settings(), "settings came twice"),
        (pb.TranslateStreamRequest(), "a message has neither settings nor a segment"),
        (segment("x" * 257), "an id has 257 characters, the limit is 256"),
    ],
    ids=["settings", "empty", "id"],
)
def test_a_message_out_of_place_ends_the_stream_after_the_answers_to_those_before(
    message: pb.TranslateStreamRequest, fault: str, server: RunningServer
) -> None:
    answers, code, details = said(
        server.address, settings(), segment("x" * 256), segment(2), message, segment(3)
    )
    assert (len(answers), code) == (2, INVALID)
    assert details.startswith(fault)


@pytest.mark.parametrize(
    ("first", "fault"),
    [
        (segment(1).SerializeToString(), "the first message has no settings"),
        (b"", "the first message has no settings"),
        (b"\x0a\x03\x1a\x01\xff", "a message can't be parsed"),
    ],
    ids=["segment", "empty", "bytes"],
)
def test_a_stream_begins_with_its_settings(first: bytes, fault: str, server: RunningServer) -> None:
    with grpc.insecure_channel(server.address) as channel:
        method = "/nmt.v1.TranslationService/TranslateStream"
        call: Any = channel.stream_stream(method, None, None)(iter([first]))
        assert call.code() is INVALID
        assert call.details().startswith(fault)
