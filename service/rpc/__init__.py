"""The gRPC side of the service: the only part that knows the protocol's messages and codes.

    request ──> interceptor ──> servicer ──> routing ──> translator
                                   │ convert               │
    status  <── status  <── exceptions                     v
    response <─────────── convert <──────────────── translations

Beside it: the models it serves, health and reflection.
"""

from service.rpc.health import HEALTH_SERVICE, Health, add_health
from service.rpc.interceptor import MetricsInterceptor
from service.rpc.models import ServedModel, load_model, make_router, read_bundles
from service.rpc.reflection import add_reflection
from service.rpc.servicer import (
    TRANSLATION_SERVICE,
    RequestLimits,
    TranslationServicer,
    add_translation,
)

__all__ = [
    "HEALTH_SERVICE",
    "TRANSLATION_SERVICE",
    "Health",
    "MetricsInterceptor",
    "ServedModel",
    "RequestLimits",
    "TranslationServicer",
    "add_health",
    "add_reflection",
    "add_translation",
    "load_model",
    "make_router",
    "read_bundles",
]
