"""The gRPC side of the service: the only part that knows the protocol's messages and codes.

    request ──> interceptors ──> servicer ──> shares ──> catalog, translator
                                    │ convert               │
    status  <── status  <─── exceptions                     v
    response <──────────── convert <────────────────── translations

Beside it: the admin rpcs, health and reflection.
"""

from service.rpc.admin import ADMIN_SERVICE, add_admin
from service.rpc.health import HEALTH_SERVICE, Health, add_health
from service.rpc.interceptor import MetricsInterceptor
from service.rpc.limits import RequestLimits
from service.rpc.reflection import REFLECTION_SERVICES, add_reflection
from service.rpc.request_log import RequestInterceptor
from service.rpc.servicer import TRANSLATION_SERVICE, TranslationServicer, add_translation
from service.rpc.streaming import Exchange

__all__ = [
    "ADMIN_SERVICE",
    "HEALTH_SERVICE",
    "REFLECTION_SERVICES",
    "TRANSLATION_SERVICE",
    "Exchange",
    "Health",
    "MetricsInterceptor",
    "RequestInterceptor",
    "RequestLimits",
    "TranslationServicer",
    "add_admin",
    "add_health",
    "add_reflection",
    "add_translation",
]
