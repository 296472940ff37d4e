"""What every rpc passes: its id, span and line in the log, its metrics, the gate, its token."""

from pathlib import Path
from typing import Any, TypeAlias

import grpc

from service.config import ServerConfig
from service.logs import RequestLog
from service.metrics import Metrics
from service.rpc import (
    ADMIN_SERVICE,
    HEALTH_SERVICE,
    REFLECTION_SERVICES,
    TRANSLATION_SERVICE,
    MetricsInterceptor,
    RequestInterceptor,
)
from service.security import TokenInterceptor, Tokens
from service.server.gate import Gate
from service.tracing import Tracer, current_trace_id

# Generic in grpc-stubs only, hence in quotes.
_Interceptor: TypeAlias = "grpc.aio.ServerInterceptor[Any, Any]"


class Interceptors:
    """The same ones for all ports, so that every rpc is counted in one place.

    Raises ConfigError if the tokens can't be used.
    """

    def __init__(self, config: ServerConfig, metrics: Metrics, tracer: Tracer) -> None:
        self.gate = Gate()
        log = RequestLog(config.request_log, config.request_log_rate, config.log_texts)
        trace_id = current_trace_id if config.exemplars else lambda: None
        self._counting = MetricsInterceptor(metrics, _services(config), trace_id)
        self._telling = RequestInterceptor(log, tracer, unlogged=[HEALTH_SERVICE])
        self._tokens = Tokens(Path(config.tokens_file)) if config.tokens_file else None

    def open(self) -> list[_Interceptor]:
        """For a port that everybody may use."""
        # Outermost first: refusals are counted and logged, and a metric knows its rpc's trace.
        return [self._telling, self._counting, self.gate]

    def guarded(self) -> list[_Interceptor]:
        """For a port where a token is asked for, if there are any."""
        return self.open() + ([TokenInterceptor(self._tokens)] if self._tokens else [])


def _services(config: ServerConfig) -> list[str]:
    """Those that are there: what is never answered is not counted."""
    services = [TRANSLATION_SERVICE, HEALTH_SERVICE]
    services += [ADMIN_SERVICE] if config.admin else []
    return services + (list(REFLECTION_SERVICES) if config.reflection else [])
