"""The addresses of a server, gRPC's settings, and why an address can't be had, which gRPC hides."""

import errno
import ipaddress
import socket
from dataclasses import dataclass
from threading import Thread
from wsgiref.simple_server import WSGIServer

import grpc
from prometheus_client import disable_created_metrics, start_http_server

from service.config import ServerConfig
from service.errors import ConfigError
from service.metrics import Metrics

# Clients behind load balancers ping every ten seconds, calls or not, so that idle connections stay
# open. More is answered with GOAWAY `too_many_pings`; a ping that arrives early is not more.
_MIN_PING_MS = 9_000
# The server's own pings find the clients that vanished without a word.
_PING_EVERY_MS, _PING_ANSWER_MS = 60_000, 20_000
# Above a thousand rpcs that come at once gRPC ends some with CANCELLED, which no client retries.
# Whom there is no room for is told so here, and when to come again.
_MAX_PENDING = 1 << 20


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen, and the flags that say so."""

    host: str
    port: int
    host_flag: str = "--host"
    port_flag: str = "--port"

    def bind(
        self, server: grpc.aio.Server, credentials: grpc.ServerCredentials | None = None
    ) -> int:
        """Opens the address, in plaintext without credentials; returns its port.

        Raises ConfigError, naming the flag to change and the reason.
        """
        address = f"{self.host}:{self.port}"
        try:
            if credentials:
                return server.add_secure_port(address, credentials)
            return server.add_insecure_port(address)
        except RuntimeError as error:
            raise self._fault() from error

    def _fault(self) -> ConfigError:
        flag, reason = self.port_flag, "is it taken?"
        try:
            [family, _, _, _, place], *_ = _places(self.host, self.port)
            with socket.socket(family) as probe:
                probe.bind(place)
        except OSError as error:
            flag = flag if error.errno in (errno.EADDRINUSE, errno.EACCES) else self.host_flag
            reason = error.strerror or str(error)
        except UnicodeError:
            flag, reason = self.host_flag, "no such name"
        return ConfigError(flag, [f"can't listen on {self.host}:{self.port}: {reason}"])


def is_local(host: str) -> bool:
    """Whether only this machine can reach an address; False for a name that nobody knows."""
    try:
        places = [place[0] for *_, place in _places(host, 0)]
    except (OSError, UnicodeError):
        return False
    return all(ipaddress.ip_address(str(place)).is_loopback for place in places)


def grpc_options(config: ServerConfig) -> list[tuple[str, int]]:
    """What every gRPC server of the process has in common."""
    options = [
        ("grpc.max_receive_message_length", config.max_message_bytes),
        ("grpc.max_send_message_length", config.max_message_bytes),
        # Otherwise a second server on the same port takes half of the connections, silently.
        ("grpc.so_reuseport", 0),
        ("grpc.server.max_pending_requests", _MAX_PENDING),
        ("grpc.server.max_pending_requests_hard_limit", _MAX_PENDING),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", _MIN_PING_MS),
        ("grpc.keepalive_time_ms", _PING_EVERY_MS),
        ("grpc.keepalive_timeout_ms", _PING_ANSWER_MS),
    ]
    if config.max_connection_age_seconds:
        grace = config.default_deadline_seconds
        options += [
            ("grpc.max_connection_age_ms", int(config.max_connection_age_seconds * 1000)),
            ("grpc.max_connection_age_grace_ms", int(grace * 1000)),
        ]
    return options


def start_metrics(host: str, port: int, metrics: Metrics) -> tuple[WSGIServer, Thread]:
    """Answers /metrics on a thread of its own. Raises ConfigError if the port is taken."""
    disable_created_metrics()  # type: ignore[no-untyped-call]
    try:
        return start_http_server(port, host.strip("[]"), metrics.registry)
    except OSError as error:
        fault = f"can't listen on {host}:{port}: {error.strerror}"
        raise ConfigError("--metrics-port", [fault]) from error


def _places(host: str, port: int) -> list[tuple[int, int, int, str, tuple[str | int, ...]]]:
    places = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    return [(*kind, tuple(place)) for *kind, place in places]  # type: ignore[misc]
