"""Server reflection that serves grpcurl and ghz: no client needs the .proto file.

Python's descriptor pool finds messages and services but not methods, which ghz asks for; and its
reflection package speaks v1alpha only, though v1 has the same messages under another name.
"""

from collections.abc import Sequence
from typing import Any

import grpc
from google.protobuf import descriptor_pool
from google.protobuf.descriptor import FileDescriptor
from grpc_reflection.v1alpha import reflection, reflection_pb2

REFLECTION_SERVICES = (reflection.SERVICE_NAME, "grpc.reflection.v1.ServerReflection")


class _MethodFindingPool:
    """A descriptor pool that also resolves `package.Service.Method`, to the service's file."""

    def __init__(self, pool: descriptor_pool.DescriptorPool) -> None:
        self._pool = pool

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)

    def FindFileContainingSymbol(self, symbol: str) -> FileDescriptor:
        """The file of a symbol. Raises KeyError."""
        try:
            return self._pool.FindFileContainingSymbol(symbol)
        except KeyError:
            service, _, method = symbol.rpartition(".")
            descriptor = self._pool.FindServiceByName(service)
            if method not in descriptor.methods_by_name:
                raise
            return descriptor.file


def add_reflection(server: grpc.aio.Server, services: Sequence[str]) -> None:
    """Answers reflection, v1alpha and v1, for the services of these full names."""
    pool = _MethodFindingPool(descriptor_pool.Default())
    # Public, but missing in grpc-stubs.
    servicer = reflection.aio.ReflectionServicer(  # type: ignore[attr-defined]
        [*services, reflection.SERVICE_NAME], pool=pool
    )
    handler = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    for name in REFLECTION_SERVICES:
        methods = {"ServerReflectionInfo": handler}
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(name, methods)])
