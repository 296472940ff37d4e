"""The parts of a server: its ports, what answers on them, and the models behind."""

import asyncio
import logging
from collections.abc import Iterator
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
from service.server.gate import SETTLING_SECONDS
from service.server.interceptors import Interceptors
from service.server.ports import Address, grpc_options, start_metrics
from service.server.vitals import Vitals
from service.tracing import start_tracer

_LOG = logging.getLogger(__name__)
VERSION = version("attention-nmt")


class Server:
    """One event loop's server: `start`, `load`, `tend` until that is cancelled, then `stop`.

    Its ports are open while models load, so that probes see a live process; translating is refused
    with UNAVAILABLE until then. Raises ConfigError if certificates or tokens can't be used.
    """

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        self._certificates = _certificates(config)
        self._tracer = start_tracer(config.otlp_endpoint, config.trace_rate, VERSION)
        self.metrics = Metrics(CollectorRegistry())
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
        if self._probes:
            await self._probes.start()

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
        """Says NOT_SERVING, answers on for the delay, finishes what was accepted, ends everything.

        What isn't finished within the drain time is cancelled. A server that never served has
        nothing to wait for.
        """
        self.health.shut_down()
        if self.catalog.is_loaded:
            await asyncio.sleep(self._config.shutdown_delay_seconds)
            self._interceptors.gate.close()
            await asyncio.sleep(SETTLING_SECONDS)
        self.health.end_watches()
        left = await self._drain()
        await self.catalog.close()
        if self._probes:
            await self._probes.stop(None)
        await asyncio.to_thread(self._tracer.close)
        if self._http:
            server, thread = self._http
            server.shutdown()
            server.server_close()
            thread.join()
        if left["requests"]:
            _LOG.warning("stopped, without an answer for some", extra={"fields": left})
        elif self.catalog.is_loaded:
            _LOG.info("stopped; everything that was accepted is answered")

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
        sentences = self.catalog.num_sentences
        return {"requests": self._interceptors.num_running, "sentences": sentences}

    async def _drain(self) -> dict[str, float]:
        """Has what was accepted finished, and cancels what isn't in time; returns how much."""
        seconds, rpc_servers = self._config.drain_seconds, [*self._rpc_servers()]
        if self.catalog.is_loaded:
            fields = self._in_flight() | {"drain_seconds": seconds}
            _LOG.info("new requests are refused, the others finished", extra={"fields": fields})
        stops = [asyncio.create_task(server.stop(seconds)) for server in rpc_servers]
        await asyncio.wait(stops, timeout=seconds)
        left = self._in_flight()
        await asyncio.gather(*stops)
        return left

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
        limits = RequestLimits.of(self._config)
        add_translation(server, TranslationServicer(self.catalog, limits))
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

    def _rpc_servers(self) -> Iterator[grpc.aio.Server]:
        """Those that are drained; probes are answered to the end."""
        yield self._translation
        if self._admin:
            yield self._admin

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
