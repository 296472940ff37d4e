"""Lets those rpcs through that bring a token; health checks need none."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any

import grpc

from service.security.refusal import refusal
from service.security.tokens import Tokens

_OPEN_SERVICE = "/grpc.health.v1.Health/"
_HOW = "send `authorization: Bearer TOKEN` or `x-api-key: TOKEN`"


class TokenInterceptor(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]
    """Answers UNAUTHENTICATED to callers without a token, before their request is received.

    Which handler answers depends on the caller, so that earlier interceptors must ask at every call
    rather than keep one for a method; they see a refusal as they see every other answer.
    """

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        handler = await continuation(handler_call_details)
        if handler is None or handler_call_details.method.startswith(_OPEN_SERVICE):
            return handler
        tokens = list(_tokens_in(handler_call_details.invocation_metadata or ()))
        if any([token in self._tokens for token in tokens]):
            return handler
        fault = "no such token" if tokens else "no token"
        return refusal(grpc.StatusCode.UNAUTHENTICATED, f"{fault}; {_HOW}")


def _tokens_in(metadata: Iterable[tuple[str, str | bytes]]) -> Iterator[str]:
    """Every token that came with a call."""
    for key, value in metadata:
        if key == "x-api-key":
            yield str(value)
        elif key == "authorization":
            scheme, _, token = str(value).partition(" ")
            if scheme.lower() == "bearer":
                yield token.strip()
