"""The handler of an rpc that is not to be served."""

from typing import Any, TypeAlias

import grpc

# Generic in grpc-stubs only, hence in quotes.
_Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
_Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


def refusal(code: grpc.StatusCode, message: str) -> _Handler:
    """Answers with a status, whatever kind the method is of, before its request is received."""

    async def refuse(requests: Any, context: _Context) -> None:
        await context.abort(code, message)

    # Requests of a stream are received only when they are asked for.
    return grpc.stream_stream_rpc_method_handler(refuse)
