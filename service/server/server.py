"""The parts of a server: its ports, what answers on them, and the models behind."""

import asyncio
import logging
from importlib.metadata import version
from threading import Thread
from wsgiref.simple_server import WSGIServer

import grpc
from prometheus_client import CollectorRegistry

from service.catalog import Catalog
from service.config import ServerConfig
from service.errors import StartupError
from service.metrics import Metrics
from service.rpc import (
    ADMIN_SERVICE,
    HEALTH_SERVICE,
    TRANSLATION_SERVICE,
    Health,
    RequestLimits,
    TranslationServicer,
    add_admin,
    add_health,
    add_reflection,
    add_translation,
)
from service.security import Certificates
from service.server.banner import banner
from service.server.exposure import exposures
from service.server.interceptors import Interceptors
from service.server.ports import Address, grpc_options, start_metrics
from service.server.vitals import Vitals
from service.tracing import start_tracer

_LOG = logging.getLogger(__name__)
# Whoever is told at the end of the drain that there will be no answer hears it within that time.
_DISMISSAL_SECONDS = 1.0
# Until the last answers have crossed the network: what is under way is lost with the connection.
_PARTING_SECONDS = 0.2
VERSION = version("attention-nmt")


class Server:
    """One event loop's server: `start`, `load`, `tend` until that is cancelled, then `stop`.

    After that the process may end, or `close` it and go on. Its ports are open while models load,
    so that probes see a live process; translating is refused with UNAVAILABLE until then. Raises
    ConfigError if certificates or tokens can't be used.
    """

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        self._certificates = _certificates(config)
        self._tracer = start_tracer(config.otlp_endpoint, config.trace_rate, VERSION)
        self.metrics = Metrics(CollectorRegistry())
        if self._certificates:
            self.metrics.watch_certificate(self._certificates.expires)
        self.catalog = Catalog(config, self.metrics)
        self.health = Health()
        self._vitals = Vitals(self.catalog, self.health)
        self._interceptors = Interceptors(config, self.metrics, self._tracer)
        self._translation = self._make_translation()
        self._admin = self._make_admin() if config.admin else None
        self._probes = self._make_probes() if self._certificates else None
        self._http: tuple[WSGIServer, Thread] | None = None
        self._reload_wanted = asyncio.Event()
        self.port = self.metrics_port = self.health_port = self.admin_port = 0

    async def start(self) -> None:
        """Opens every port. Raises ConfigError if one is taken."""
        for warning in exposures(self._config):
            _LOG.warning(warning)
        self._open_ports()
        for server in self._rpc_servers():
            await server.start()

    async def load(self) -> None:
        """Loads and warms up every model, then serves. Raises ConfigError and BundleError."""
        await self.catalog.load()
        self._vitals.look()

    async def tend(self) -> None:
        """Keeps health true and models up to date, for ever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._vitals.watch())
            group.create_task(self.catalog.watch())
            group.create_task(self._reload_when_wanted())

    def request_reload(self) -> None:
        """Has the models directory looked at, now or as soon as the models are loaded."""
        self._reload_wanted.set()

    async def stop(self) -> None:
        """Says NOT_SERVING, answers on for the delay, finishes what was accepted, ends the models.

        What isn't finished within the drain time ends with UNAVAILABLE, and so does who calls from
        then on: the ports are still open. A server that never served has nothing to wait for.
        """
        self.health.shut_down()
        left = await self._drain() if self.catalog.is_loaded else {}
        await self.catalog.close()
        if left:
            await self._interceptors.gate.wait_until_empty(_DISMISSAL_SECONDS)
        await asyncio.gather(
            asyncio.to_thread(self._tracer.close),
            asyncio.sleep(_PARTING_SECONDS if self.catalog.is_loaded else 0),
        )
        if left:
            _LOG.warning("stopped, without an answer for some", extra={"fields": left})
        elif self.catalog.is_loaded:
            _LOG.info("stopped; everything that was accepted is answered")

    async def close(self) -> None:
        """Closes the ports at once. Calls that arrive meanwhile may end with CANCELLED."""
        await asyncio.gather(*(server.stop(None) for server in self._rpc_servers()))
        if self._http:
            server, thread = self._http
            server.shutdown()
            server.server_close()
            thread.join()

    def banner(self) -> str:
        """What is served and where, and a command to try."""
        return banner(
            self._config,
            self.catalog.router.models,
            port=self.port,
            metrics_port=self.metrics_port,
            health_port=self.health_port,
            admin_port=self.admin_port,
        )

    def outlook(self) -> dict[str, object]:
        """For the log, as `extra`: what is in flight, and the time that a stop gives it."""
        config, is_loaded = self._config, self.catalog.is_loaded
        times = {
            "delay_seconds": config.shutdown_delay_seconds if is_loaded else 0,
            "drain_seconds": config.drain_seconds if is_loaded else 0,
        }
        return {"fields": self._in_flight() | times}

    def _in_flight(self) -> dict[str, float]:
        requests = self._interceptors.gate.num_inside
        return {"requests": requests, "sentences": self.catalog.num_sentences}

    async def _drain(self) -> dict[str, float]:
        """Answers for the delay, then finishes what was accepted; returns what is left, if any."""
        gate, seconds = self._interceptors.gate, self._config.drain_seconds
        await asyncio.sleep(self._config.shutdown_delay_seconds)
        gate.close()
        self.health.end_watches()
        fields = self._in_flight() | {"drain_seconds": seconds}
        _LOG.info("new requests are refused, the others finished", extra={"fields": fields})
        await gate.wait_until_empty(seconds)
        return self._in_flight() if gate.num_inside else {}

    def _open_ports(self) -> None:
        config = self._config
        self.port = Address(config.host, config.port).bind(self._translation, self._credentials())
        if self._admin:
            address = Address(config.admin_host, config.admin_port, "--admin-host", "--admin-port")
            self.admin_port = address.bind(self._admin, self._credentials())
        if self._probes:
            address = Address(config.host, config.health_port, port_flag="--health-port")
            self.health_port = address.bind(self._probes)
        self.metrics.build.labels(VERSION).set(1)
        self._http = start_metrics(config.host, config.metrics_port, self.metrics)
        self.metrics_port = self._http[0].server_port

    def _credentials(self) -> grpc.ServerCredentials | None:
        """For one port: gRPC takes them only once."""
        return self._certificates.credentials() if self._certificates else None

    def _make_translation(self) -> grpc.aio.Server:
        server = grpc.aio.server(
            interceptors=self._interceptors.guarded(), options=grpc_options(self._config)
        )
        limits, closing = RequestLimits.of(self._config), self._interceptors.gate.closed
        add_translation(server, TranslationServicer(self.catalog, limits, closing))
        self._add_common(server, TRANSLATION_SERVICE)
        return server

    def _make_admin(self) -> grpc.aio.Server:
        server = grpc.aio.server(
            interceptors=self._interceptors.guarded(), options=grpc_options(self._config)
        )
        add_admin(server, self.catalog)
        self._add_common(server, ADMIN_SERVICE)
        return server

    def _make_probes(self) -> grpc.aio.Server:
        server = grpc.aio.server(
            interceptors=self._interceptors.open(), options=grpc_options(self._config)
        )
        add_health(server, self.health)
        return server

    def _add_common(self, server: grpc.aio.Server, service: str) -> None:
        add_health(server, self.health)
        if self._config.reflection:
            add_reflection(server, [service, HEALTH_SERVICE])

    def _rpc_servers(self) -> list[grpc.aio.Server]:
        servers = (self._translation, self._admin, self._probes)
        return [server for server in servers if server]

    async def _reload_when_wanted(self) -> None:
        while True:
            await self._reload_wanted.wait()
            self._reload_wanted.clear()
            try:
                _LOG.info("SIGHUP: %s", await self.catalog.reload())
            except StartupError as error:
                _LOG.error("SIGHUP changed nothing: %s", error)


def _certificates(config: ServerConfig) -> Certificates | None:
    if not config.tls_certificate:
        return None
    return Certificates(config.tls_certificate, config.tls_key, config.tls_client_ca)
