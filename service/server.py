"""The server process: ports, models, health, signals, and the order in which they come and go.

    loading ──models warm──> serving ──SIGTERM, SIGINT──> draining ──accepted rpcs done──> stopped
    NOT_SERVING              SERVING                      NOT_SERVING                      exit 0
       └───────────────────────────────SIGTERM, SIGINT─────────────────────────────────────>┘

One event loop runs gRPC; each model's engine has its own threads, and /metrics has one. The gRPC
port is open while models load, so that probes see a live process; translating is refused with
UNAVAILABLE until then. A second signal ends the process at once.
"""

import asyncio
import errno
import logging
import os
import signal
import socket
from collections.abc import Sequence
from importlib.metadata import version
from threading import Thread
from wsgiref.simple_server import WSGIServer

import grpc
from prometheus_client import CollectorRegistry, disable_created_metrics, start_http_server

from service.bundle import Bundle
from service.config import ServerConfig
from service.errors import ConfigError
from service.metrics import Metrics
from service.rpc import (
    HEALTH_SERVICE,
    TRANSLATION_SERVICE,
    Health,
    MetricsInterceptor,
    RequestLimits,
    ServedModel,
    TranslationServicer,
    add_health,
    add_reflection,
    add_translation,
    load_model,
    make_router,
    read_bundles,
)

_LOG = logging.getLogger(__name__)


def serve(config: ServerConfig) -> None:
    """Serves until SIGTERM or SIGINT. Raises ConfigError and BundleError if it can't start."""
    logging.basicConfig(
        level=config.log_level.upper(),
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    asyncio.run(_serve(config))


async def _serve(config: ServerConfig) -> None:
    stop_wanted = _watch_signals()
    server = Server(config, read_bundles(config.models))
    await server.start()
    loading = asyncio.create_task(server.load())
    stopping = asyncio.create_task(stop_wanted.wait())
    try:
        await asyncio.wait((loading, stopping), return_when=asyncio.FIRST_COMPLETED)
        if loading.done():
            loading.result()
            print(server.banner(), flush=True)
        await stopping
    finally:
        stopping.cancel()
        is_loading = loading.cancel()
        await server.stop()
    if is_loading:
        # asyncio.run would wait for the thread that loads, which nothing can stop.
        os._exit(0)


def _watch_signals() -> asyncio.Event:
    """An event that SIGTERM or SIGINT sets; the next one of either kills the process."""
    loop, event = asyncio.get_running_loop(), asyncio.Event()

    def stop() -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)
        event.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    return event


def _listening_fault(host: str, port: int) -> ConfigError:
    """Why gRPC, which doesn't say, can't listen on an address."""
    flag, reason = "--port", "is it taken?"
    try:
        [family, _, _, _, place], *_ = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM
        )
        with socket.socket(family) as probe:
            probe.bind(place)
    except OSError as error:
        flag = "--port" if error.errno in (errno.EADDRINUSE, errno.EACCES) else "--host"
        reason = error.strerror or str(error)
    except UnicodeError:
        flag, reason = "--host", "no such name"
    return ConfigError(flag, [f"can't listen on {host}:{port}: {reason}"])


class Server:
    """The sockets and models of one process: `start`, `load`, then `stop`, on one event loop."""

    def __init__(self, config: ServerConfig, bundles: Sequence[Bundle]) -> None:
        self._config = config
        self._bundles = bundles
        self.metrics = Metrics(CollectorRegistry())
        self.models: list[ServedModel] = []
        self._health = Health(bundle.manifest.name for bundle in bundles)
        self._servicer = TranslationServicer(RequestLimits.of(config))
        self._grpc = self._make_grpc_server()
        self._http: tuple[WSGIServer, Thread] | None = None
        self.port = self.metrics_port = 0

    async def start(self) -> None:
        """Opens both ports. Raises ConfigError if one is taken."""
        host = self._config.host
        self.port = self._bind(host, self._config.port)
        self._http = self._start_metrics(host.strip("[]"))
        self.metrics_port = self._http[0].server_port
        await self._grpc.start()

    async def load(self) -> None:
        """Loads and warms up every model, then serves. Raises ConfigError."""
        for bundle in self._bundles:
            model = await asyncio.to_thread(load_model, bundle, self._config, self.metrics)
            self.models.append(model)
        self._servicer.router = make_router(self.models, self._config.default_model)
        self._health.serve()

    async def stop(self) -> None:
        """Says NOT_SERVING, finishes accepted rpcs within the drain time, then ends everything."""
        self._health.shut_down()
        await self._grpc.stop(self._config.drain_seconds)
        for model in self.models:
            await asyncio.to_thread(model.translator.engine.close)
        if self._http:
            server, thread = self._http
            server.shutdown()
            server.server_close()
            thread.join()

    def banner(self) -> str:
        """What is served and where, and a command to try."""
        models = ", ".join(
            f"{model.name} {model.manifest.version} "
            f"({' to '.join(model.languages)}, {model.precision} on {model.device})"
            for model in self.models
        )
        host = self._config.host
        return (
            f"serving {models} on {host}:{self.port}, metrics on "
            f"http://{host}:{self.metrics_port}/metrics; try: "
            f'python -m service translate --server localhost:{self.port} "I\'m home."'
        )

    def _make_grpc_server(self) -> grpc.aio.Server:
        server = grpc.aio.server(
            interceptors=[MetricsInterceptor(self.metrics)], options=self._grpc_options()
        )
        add_translation(server, self._servicer)
        add_health(server, self._health)
        if self._config.reflection:
            add_reflection(server, [TRANSLATION_SERVICE, HEALTH_SERVICE])
        return server

    def _grpc_options(self) -> list[tuple[str, int]]:
        config = self._config
        options = [
            ("grpc.max_receive_message_length", config.max_message_bytes),
            ("grpc.max_send_message_length", config.max_message_bytes),
            # Otherwise a second server on the same port takes half of the connections, silently.
            ("grpc.so_reuseport", 0),
        ]
        if config.max_connection_age_seconds:
            grace = config.default_deadline_seconds
            options += [
                ("grpc.max_connection_age_ms", int(config.max_connection_age_seconds * 1000)),
                ("grpc.max_connection_age_grace_ms", int(grace * 1000)),
            ]
        return options

    def _bind(self, host: str, port: int) -> int:
        try:
            return self._grpc.add_insecure_port(f"{host}:{port}")
        except RuntimeError as error:
            raise _listening_fault(host, port) from error

    def _start_metrics(self, host: str) -> tuple[WSGIServer, Thread]:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.metrics.build.labels(version("attention-nmt")).set(1)
        port = self._config.metrics_port
        try:
            return start_http_server(port, host, self.metrics.registry)
        except OSError as error:
            fault = f"can't listen on {host}:{port}: {error.strerror}"
            raise ConfigError("--metrics-port", [fault]) from error
