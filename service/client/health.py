"""The `health` command: is a server, or one of its models, serving?

    python -m service health [--server ADDRESS] [--name NAME]

Prints what `grpc.health.v1.Health` answers. Exit code 0: it is SERVING; 1: anything else, no answer
too, and stderr says why. It is the health check of the container: without an address it asks the
server that these NMT_* variables start.
"""

import argparse
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthStub

from service.client.access import PLAINTEXT, Access, access_from
from service.client.remote import explain
from service.config import ServerConfig
from service.errors import ConfigError

SERVING = "SERVING"
TIMEOUT_SECONDS = 4.0


@dataclass(frozen=True, slots=True)
class Answer:
    """SERVING or NOT_SERVING; without an answer the name of the gRPC status, and the reason."""

    status: str
    reason: str = ""


def health(options: argparse.Namespace) -> int:
    """Checks once; returns the exit code."""
    try:
        access = access_from(options, os.environ)
        address = options.server or address_to_check(os.environ, access)
        answer = health_of(address, options.name, access=access)
    except ConfigError as error:
        # Not 2, as elsewhere: that is no exit code for the health check of a container.
        print(*error.faults, sep="\n", file=sys.stderr)
        return 1
    print(answer.status)
    if answer.reason:
        print(answer.reason, file=sys.stderr)
    return 0 if answer.status == SERVING else 1


def health_of(
    address: str,
    name: str = "",
    timeout_seconds: float = TIMEOUT_SECONDS,
    access: Access = PLAINTEXT,
) -> Answer:
    """What the server at `address` says of `name`; "" is the whole server.

    Raises ConfigError if `access` names files that can't be used.
    """
    with access.channel(address) as channel:
        check: Any = HealthStub(channel).Check
        request = HealthCheckRequest(service=name)
        try:
            status = check(request, timeout=timeout_seconds, metadata=access.metadata).status
        except grpc.RpcError as error:
            code: Any = error
            return Answer(code.code().name, explain(error, address, access))
    return Answer(HealthCheckResponse.ServingStatus.Name(status))


def address_to_check(environment: Mapping[str, str], access: Access = PLAINTEXT) -> str:
    """Where a server with these NMT_* variables answers health checks.

    A server with TLS answers them in plaintext too, on a port of their own.
    Raises ConfigError if no server would start with them.
    """
    config = ServerConfig.load({}, environment)
    is_plain_port = config.tls_certificate and not access.is_tls
    return f"{config.local_host}:{config.health_port if is_plain_port else config.port}"
