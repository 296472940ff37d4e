"""Gives every rpc its request id, its span and its line in the log."""

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any

import grpc

from service.bundle import Manifest
from service.logs import RequestLog, RequestRecord, current_request, request_id
from service.rpc.convert import Answer
from service.rpc.wrapping import Context, Ended, Wrapper
from service.tracing import SilentTracer, Tracer
from service.translator import PairScore

REQUEST_ID_KEY = "x-request-id"


class RequestInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    """The first of the interceptors: what the others do and log belongs to the request as well.

    The id is the caller's own or a new one, and comes back in the trailing metadata.

    unlogged: services whose rpcs have none of this, such as health's, which probes call by the
    second.
    """

    def __init__(
        self, log: RequestLog, tracer: Tracer | None = None, unlogged: Iterable[str] = ()
    ) -> None:
        self._log = log
        self._tracer = tracer or SilentTracer()
        self._unlogged = tuple(f"/{service}/" for service in unlogged)
        self._wrapper = Wrapper(lambda method: partial(self._begin, method.removeprefix("/")))

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        # Asked at every call: an interceptor behind this one may refuse the one and not the other.
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None or method.startswith(self._unlogged):
            return handler
        return self._wrapper.wrap(method, handler)

    def _begin(self, method: str, context: Context) -> Ended:
        started, metadata = time.perf_counter(), context.invocation_metadata() or ()
        span = self._tracer.begin(method, metadata)
        record = RequestRecord(request_id(metadata), trace_id=span.trace_id)
        record.begin()
        context.set_trailing_metadata(((REQUEST_ID_KEY, record.request_id),))

        def ended(code: str) -> None:
            seconds = time.perf_counter() - started
            facts = record.facts() if span.trace_id else {}  # a trace that isn't kept needs none
            span.end(code, {"request_id": record.request_id, **facts})
            self._log.ended(record, method, code, seconds, context.details() or "")

        return ended


def note_contents(contents: Sequence[str]) -> None:
    """What the current rpc is to translate, for its line in the log and its span."""
    current_request().contents = contents


def note_text(text: str) -> None:
    """The current rpc is a stream, and has another text to translate."""
    current_request().add_text(text)


def note_fault() -> None:
    """One of the texts of a stream was not translated."""
    current_request().num_failed += 1


def note_scores(manifest: Manifest, scores: Sequence[PairScore]) -> None:
    """What came of the current rpc, if it was to score."""
    record = current_request()
    record.models = [f"{manifest.name}@{manifest.version}"]
    record.num_sentences = len(scores)
    record.num_source_tokens = sum(each.source_token_count for each in scores)
    record.num_target_tokens = sum(len(each.token_scores.log_probs) for each in scores)


def note_answers(answers: Sequence[Answer]) -> None:
    """What came of the current rpc, likewise; a stream tells it bit by bit."""
    record = current_request()
    translators = dict.fromkeys([answer.translator for answer in answers])
    manifests = [translator.manifest for translator in translators]
    names = [f"{manifest.name}@{manifest.version}" for manifest in manifests]
    record.models = [*dict.fromkeys([*record.models, *names])]
    sentences = [each for answer in answers for each in answer.translation.sentences]
    record.num_sentences = (record.num_sentences or 0) + len(sentences)
    num_tokens = sum([each.source_token_count for each in sentences])
    record.num_source_tokens = (record.num_source_tokens or 0) + num_tokens
    num_tokens = sum([each.hypotheses[0].token_count for each in sentences if each.hypotheses])
    record.num_target_tokens = (record.num_target_tokens or 0) + num_tokens
