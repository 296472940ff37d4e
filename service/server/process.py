"""A server process, from its start to its exit code.

    loading ──models warm──> serving ──SIGTERM, SIGINT──> leaving ──delay──> draining ──> exit 0
    NOT_SERVING              SERVING                      NOT_SERVING        NOT_SERVING
       └───────────────────────────────SIGTERM, SIGINT────────────────────────────────────> exit 0

While it leaves, requests are still answered: load balancers need a moment to notice. While it
drains, what was accepted is finished. A second SIGTERM or SIGINT ends the process at once, and
SIGHUP has the models directory looked at.
"""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from types import FrameType

from service.config import ServerConfig, service_links
from service.engine import usable_cores
from service.logs import say, set_up_logging
from service.server.memory import share_heaps
from service.server.pauses import shorten_pauses
from service.server.server import Server

_LOG = logging.getLogger(__name__)
_STOPPING = (signal.SIGTERM, signal.SIGINT)


def run(flags: Mapping[str, str], environment: Mapping[str, str], file: Path | None = None) -> None:
    """`serve` with the configuration of these. Raises what that does, and ConfigError.

    The log is as they want it before anything can be wrong with them.
    """
    _set_up_logging(ServerConfig.of_log(flags, environment, file))
    if links := service_links(environment):
        text = "ignoring what Kubernetes set for a Service, no settings: %s"
        _LOG.warning(text, ", ".join(links))
    serve(ServerConfig.load(flags, environment, file))


def serve(config: ServerConfig) -> None:
    """Serves until SIGTERM or SIGINT, then ends the process with 0.

    Raises ConfigError and BundleError if it can't start.
    """
    _set_up_logging(config)
    share_heaps(usable_cores())
    asyncio.run(_serve(config))


def _set_up_logging(config: ServerConfig) -> None:
    set_up_logging(config.log_level, config.log_format, log_texts=config.log_texts)


async def _serve(config: ServerConfig) -> None:
    server = Server(config)
    stop_wanted = _watch_signals(server)
    await server.start()
    working = asyncio.create_task(_work(server))
    stopping = asyncio.create_task(stop_wanted.wait())
    await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
    has_failed = working.done()  # it ends by a failure only
    stopping.cancel()
    working.cancel()
    await server.stop()
    if has_failed:
        await server.close()
        return working.result()
    logging.shutdown()
    sys.stdout.flush()
    # The kernel closes the ports: gRPC would end with CANCELLED who calls meanwhile. And Python
    # would wait for a thread that still loads a model, which nothing can stop.
    os._exit(0)


async def _work(server: Server) -> None:
    await server.load()
    shorten_pauses()
    say(server.banner(), sys.stdout)
    await server.tend()


def _watch_signals(server: Server) -> asyncio.Event:
    """An event that SIGTERM or SIGINT sets; the next one of either ends the process."""
    loop, event = asyncio.get_running_loop(), asyncio.Event()

    def stop(number: int) -> None:
        _LOG.info("%s: the server stops", signal.Signals(number).name, extra=server.outlook())
        for number in _STOPPING:
            loop.remove_signal_handler(number)
            signal.signal(number, _end_at_once)
        event.set()

    for number in _STOPPING:
        loop.add_signal_handler(number, stop, number)
    loop.add_signal_handler(signal.SIGHUP, server.request_reload)
    return event


def _end_at_once(number: int, frame: FrameType | None) -> None:
    # The first process of a container is spared by a signal that it leaves to the kernel.
    os._exit(128 + number)
