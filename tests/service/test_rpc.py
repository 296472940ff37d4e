"""The rpcs, on a real server: what is asked is what is answered, and failures say why."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from math import isclose
from pathlib import Path

import grpc
import pytest

from service.catalog import Catalog, Router, ServedModel
from service.client import Client
from service.config import ServerConfig
from service.errors import (
    DeadlineExceeded,
    InvalidArgument,
    QueueFull,
    TranslationError,
    UnknownModel,
    WorkerFailed,
)
from service.pb import translation_pb2 as pb
from service.rpc import RequestLimits, TranslationServicer, add_translation
from service.rpc.convert import Answer, response_bytes
from tests.running_server import RunningServer, running_server

TEXT = "Two young women are walking."
METHOD = "/nmt.v1.TranslationService/Translate"


def translate(client: Client, *contents: str, **fields: object) -> list[pb.Translation]:
    request = pb.TranslateRequest(contents=contents, **fields)  # type: ignore[arg-type]
    return list(client.translate(request).translations)


def test_every_text_is_translated_in_order_as_it_would_be_alone(client: Client) -> None:
    contents = [TEXT, "A man.", "", "The lazy dog, doesn't it?", " \n"]
    together = translate(client, *contents)
    assert together == [translate(client, text)[0] for text in contents]


def test_a_translation_says_which_model_of_which_languages_made_it(client: Client) -> None:
    [translation] = translate(client, TEXT, model="tiny-bahdanau", model_version="1")
    assert (translation.model, translation.model_version) == ("tiny-bahdanau", "1")
    assert (translation.source_language_code, translation.target_language_code) == ("en", "fr")


def test_white_space_stays_and_spans_lie_in_the_texts_as_the_client_knows_them(
    client: Client,
) -> None:
    content = f"\t {TEXT}\n"
    [translation] = translate(client, content)
    [sentence] = translation.sentences
    text = translation.translated_text
    assert content[sentence.source.begin : sentence.source.end] == TEXT
    assert text[sentence.target.begin : sentence.target.end] == sentence.hypotheses[0].text
    assert text.startswith("\t ") and text.endswith("\n")


@pytest.mark.parametrize("content", ["", " \n ", "😀", "12:30", "…"])
def test_a_text_with_nothing_to_translate_passes_through(content: str, client: Client) -> None:
    [translation] = translate(client, content)
    assert translation.passed_through
    assert (translation.translated_text, len(translation.sentences)) == (content, 0)


def test_attention_comes_when_it_is_asked_for_and_its_rows_sum_to_one(client: Client) -> None:
    [translation] = translate(client, f"  {TEXT}", include_attention=True)
    [sentence] = translation.sentences
    attention = sentence.hypotheses[0].attention
    rows = [
        attention.weights[start : start + attention.num_sources]
        for start in range(0, len(attention.weights), attention.num_sources)
    ]
    assert (attention.num_heads, len(rows)) == (1, attention.num_targets)
    assert len(attention.target_tokens) == attention.num_targets
    assert len(attention.source_tokens) == attention.num_sources == sentence.source_token_count
    assert all(isclose(sum(row), 1, abs_tol=1e-5) for row in rows)
    [plain] = translate(client, f"  {TEXT}")
    assert not plain.sentences[0].hypotheses[0].HasField("attention")


def test_attention_is_the_mean_of_its_heads_where_those_are_asked_for(client: Client) -> None:
    asked = {"include_attention": True}
    [plain] = translate(client, TEXT, **asked)
    [detailed] = translate(client, TEXT, **asked, include_attention_heads=True)
    mean = plain.sentences[0].hypotheses[0].attention
    each = detailed.sentences[0].hypotheses[0].attention
    size = each.num_targets * each.num_sources
    heads = [each.weights[head * size : (head + 1) * size] for head in range(each.num_heads)]
    assert len(heads) > 1 and len(heads[-1]) == size == len(mean.weights)
    means = [sum(weights) / len(heads) for weights in zip(*heads, strict=True)]
    assert means == pytest.approx(mean.weights, abs=1e-6)
    with pytest.raises(InvalidArgument, match="^include_attention_heads is set without"):
        translate(client, TEXT, include_attention_heads=True)


def test_source_tokens_lie_in_the_text_and_end_with_an_empty_one(client: Client) -> None:
    content = f"  {TEXT}"
    [translation] = translate(client, content, include_attention=True)
    *tokens, end = translation.sentences[0].hypotheses[0].attention.source_tokens
    assert all(content[token.begin : token.end] == token.text for token in tokens)
    assert (end.begin, end.end) == (len(content), len(content))
    assert all(token.end <= following.begin for token, following in pairwise(tokens))


def test_hypotheses_come_best_first_and_the_first_is_the_translation(client: Client) -> None:
    options = pb.DecodingOptions(beam_size=4, num_hypotheses=4)
    [translation] = translate(client, TEXT, options=options)
    hypotheses = translation.sentences[0].hypotheses
    scores = [hypothesis.score for hypothesis in hypotheses]
    assert len(hypotheses) == 4 and scores == sorted(scores, reverse=True)
    assert translation.translated_text == hypotheses[0].text
    for hypothesis in hypotheses:
        mean = hypothesis.log_prob / hypothesis.target_token_count
        assert isclose(hypothesis.score, mean, rel_tol=1e-5)


def test_a_length_limit_is_kept_and_named_as_the_reason(client: Client) -> None:
    [translation] = translate(client, TEXT, options=pb.DecodingOptions(max_length=3))
    [hypothesis] = translation.sentences[0].hypotheses
    assert hypothesis.target_token_count == 3
    assert hypothesis.finish_reason == pb.FINISH_REASON_LENGTH_LIMIT


def test_the_listed_defaults_are_what_absent_options_mean(client: Client) -> None:
    listed = client.list_models()
    [model] = [model for model in listed.models if model.name == listed.default_model]
    assert translate(client, TEXT) == translate(client, TEXT, options=model.default_options)


def test_every_model_is_listed_with_all_that_a_client_needs(client: Client) -> None:
    listed = client.list_models()
    assert [model.name for model in listed.models] == ["tiny-bahdanau", "tiny-transformer"]
    for model in listed.models:
        assert {field.name for field, _ in model.ListFields()} == set(
            pb.Model.DESCRIPTOR.fields_by_name
        )
    assert {field.name for field, _ in listed.limits.ListFields()} == set(
        pb.Limits.DESCRIPTOR.fields_by_name
    ) - {"max_deadline_seconds"}  # by default there is none


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"contents": []}, InvalidArgument, "contents is empty"),
        ({"contents": ["a"] * 257}, InvalidArgument, "contents has 257 texts, the limit is 256"),
        (
            {
                "contents": ["a", "dog " * 80],
                "text_options": {"long_sentences": pb.LONG_SENTENCES_REFUSE},
            },
            InvalidArgument,
            r"contents\[1\] has a sentence of \d+ tokens, .*48",
        ),
        ({"text_options": {"long_sentences": 9}}, InvalidArgument, "long_sentences is 9"),
        (
            {"model": "tiny-bahdanau", "model_version": "2"},
            UnknownModel,
            "version '2' of model 'tiny-bahdanau' is not served; served: 1",
        ),
        ({"model_version": "1"}, InvalidArgument, "model_version is '1', but model is empty"),
        ({"model": "x" * 5000}, UnknownModel, "model 'x{64}'… is not served; served: tiny"),
        ({"options": {"beam_size": 65}}, InvalidArgument, "beam_size is 65.* from 1 to 64"),
        ({"options": {"beam_size": 0}}, InvalidArgument, "beam_size is 0"),
        ({"options": {"num_hypotheses": 2}}, InvalidArgument, "num_hypotheses is 2 but beam_size"),
        ({"options": {"max_length": 81}}, InvalidArgument, "max_length is 81, .* 80"),
        ({"options": {"length_penalty": float("nan")}}, InvalidArgument, "length_penalty is nan"),
    ],
)
def test_a_bad_request_is_refused_with_the_thing_the_value_and_the_limit(
    fields: dict[str, object], error: type[TranslationError], message: str, client: Client
) -> None:
    with pytest.raises(error, match=message):
        client.translate(pb.TranslateRequest(**{"contents": [TEXT], **fields}))  # type: ignore[arg-type]


def test_a_text_that_is_not_utf8_is_refused(server: RunningServer) -> None:
    with grpc.insecure_channel(server.address) as channel:
        call = channel.unary_unary(METHOD, None, None)
        with pytest.raises(grpc.RpcError) as caught:
            call(b"\x0a\x01\xff")  # contents: one byte that begins no character
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


class FailingCatalog(Catalog):
    """Fails when it is asked who translates."""

    def __init__(self, error: Exception) -> None:
        super().__init__(ServerConfig())
        self._error = error

    @property
    def router(self) -> Router[ServedModel]:
        raise self._error


@contextmanager
def serving(models: Path, **settings: object) -> Iterator[TranslationServicer]:
    """A servicer of this process, whose models are loaded."""
    config = ServerConfig(models=models, device="cpu", workers=1, **settings)  # type: ignore[arg-type]
    catalog = Catalog(config)
    asyncio.run(catalog.load())
    try:
        yield TranslationServicer(catalog, RequestLimits.of(config))
    finally:
        asyncio.run(catalog.close())


def as_the_client_sees(error: Exception) -> TranslationError:
    """What a client gets when a server fails with `error`."""

    async def scenario() -> TranslationError:
        servicer = TranslationServicer(FailingCatalog(error), RequestLimits.of(ServerConfig()))
        server = grpc.aio.server()
        add_translation(server, servicer)
        port = server.add_insecure_port("localhost:0")
        await server.start()
        request = pb.TranslateRequest(contents=[TEXT])
        with Client(f"localhost:{port}") as client, pytest.raises(TranslationError) as caught:
            await asyncio.to_thread(client.translate, request)
        await server.stop(None)
        return caught.value

    return asyncio.run(scenario())


def test_an_unexpected_failure_says_nothing_to_the_client_and_everything_to_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    error = as_the_client_sees(RuntimeError("broken by a secret"))
    assert isinstance(error, WorkerFailed)
    assert "secret" not in str(error)
    assert "RuntimeError: broken by a secret" in caplog.text


def test_a_full_queue_says_when_to_come_back() -> None:
    error = as_the_client_sees(QueueFull("full", retry_after_seconds=0.5))
    assert isinstance(error, QueueFull)
    assert error.retry_after_seconds == 0.5


@pytest.fixture(scope="module")
def narrow(models: Path) -> Iterator[RunningServer]:
    """A server of short messages."""
    with running_server(models, "--max-message-bytes=4096") as server:
        yield server


def test_an_answer_above_the_message_limit_is_refused_with_its_size(narrow: RunningServer) -> None:
    with Client(narrow.address) as client:
        with pytest.raises(InvalidArgument, match="the answer has more than 4096 bytes"):
            translate(client, *[TEXT] * 4, model="tiny-transformer", include_attention=True)


@pytest.mark.parametrize(
    ("setting", "contents", "message"),
    [
        ("max_characters", ["12345", "67890"], "contents has 10 characters, the limit is 9"),
        (
            "max_content_characters",
            ["", "1234567890"],
            r"contents\[1\] has 10 characters, the limit is 9",
        ),
    ],
)
def test_texts_with_too_many_characters_are_refused(
    setting: str, contents: list[str], message: str
) -> None:
    limits = RequestLimits.of(ServerConfig(**{setting: 9}))  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=message):
        limits.check_contents(contents)
    limits.check_contents(["Яé中🙂5", "6789"])


def test_a_large_answer_is_written_off_the_event_loop_and_a_small_one_on_it(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = list[bool]()

    def recorded(answers: list[Answer], max_bytes: int) -> bytes:
        threads.append(threading.current_thread() is threading.main_thread())
        return response_bytes(answers, max_bytes)

    monkeypatch.setattr("service.rpc.servicer.response_bytes", recorded)
    with serving(models, default_model="tiny-bahdanau") as servicer:
        asyncio.run(servicer.translate(pb.TranslateRequest(contents=[TEXT])))
        request = pb.TranslateRequest(contents=[TEXT] * 32, include_attention=True)
        assert len(asyncio.run(servicer.translate(request)).translations) == 32
    assert threads == [True, False]


def test_a_request_above_the_message_limit_is_refused(narrow: RunningServer) -> None:
    with Client(narrow.address) as client:
        with pytest.raises(TranslationError, match="RESOURCE_EXHAUSTED.*4096"):
            translate(client, " " * 5000)


def test_a_request_without_a_deadline_gets_the_servers(models: Path) -> None:
    settings = {"default_model": "tiny-bahdanau", "default_deadline_seconds": 0.001}
    request = pb.TranslateRequest(contents=[TEXT] * 64)
    with serving(models, **settings) as servicer:
        assert len(asyncio.run(servicer.translate(request, remaining=60.0)).translations) == 64
        with pytest.raises(DeadlineExceeded):
            asyncio.run(servicer.translate(request))


@pytest.mark.parametrize(("remaining", "left"), [(None, 4.0), (3600.0, 5.0), (2.0, 2.0)])
def test_a_longer_deadline_is_shortened_to_the_servers(
    remaining: float | None, left: float
) -> None:
    config = ServerConfig(default_deadline_seconds=4.0, max_deadline_seconds=5.0)
    limits = RequestLimits.of(config)
    before = time.monotonic()
    deadline = limits.deadline(remaining)
    assert before + left <= deadline <= time.monotonic() + left


def test_a_deadline_that_has_passed_is_exceeded() -> None:
    with pytest.raises(DeadlineExceeded):
        RequestLimits.of(ServerConfig()).deadline(0.0)
