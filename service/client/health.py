"""The health check of a container: is the server beside it serving?

    python -m service.client.health [ADDRESS] [--name NAME]

Prints what `grpc.health.v1.Health` answers. Exit code 0: it is SERVING; 1: anything else, no answer
too. It speaks plaintext: a server with TLS has a port for that.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from service.config import ServerConfig
from service.errors import ConfigError

_WHAT = "Ask a server whether it serves; exit code 0: it does."
SERVING = "SERVING"
TIMEOUT_SECONDS = 4.0
_ANY_ADDRESS = ("0.0.0.0", "[::]", "::")


def health_of(address: str, name: str = "", timeout_seconds: float = TIMEOUT_SECONDS) -> str:
    """What the server at `address` says of `name` ("" is the whole server): SERVING, NOT_SERVING.

    Without an answer within `timeout_seconds`, or with an error: the name of the gRPC status.
    """
    with grpc.insecure_channel(address) as channel:
        check: Any = HealthStub(channel).Check
        request = HealthCheckRequest(service=name)
        try:
            status = check(request, timeout=timeout_seconds).status
        except grpc.RpcError as error:
            code: Any = error
            return str(code.code().name)
    return str(HealthCheckResponse.ServingStatus.Name(status))


def address_to_check(environment: Mapping[str, str]) -> str:
    """Where a server with these NMT_* variables answers health checks in plaintext.

    Raises ConfigError if no server would start with them.
    """
    config = ServerConfig.load({}, environment)
    host = "localhost" if config.host in _ANY_ADDRESS else config.host
    return f"{host}:{config.health_port if config.tls_certificate else config.port}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Checks once; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m service.client.health", description=_WHAT)
    parser.add_argument("address", nargs="?", help="default: where NMT_* has the server listen")
    parser.add_argument("--name", default="", help="what to ask for (default: the whole server)")
    options = parser.parse_args(arguments)
    try:
        status = health_of(options.address or address_to_check(os.environ), options.name)
    except ConfigError as error:
        print(*error.faults, sep="\n", file=sys.stderr)
        return 1
    print(status)
    return 0 if status == SERVING else 1


if __name__ == "__main__":
    sys.exit(main())
