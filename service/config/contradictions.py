"""What is wrong with a configuration whose fields are each in range."""

from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from service.config.option import flag

if TYPE_CHECKING:
    from service.config.fields import ServerConfig


def contradictions(config: "ServerConfig") -> Iterator[str]:
    """Every fault, with the flags it is about and the way out."""
    yield from _devices(config)
    yield from _addresses(config)
    yield from _tls(config)
    yield from _telemetry(config)
    if 0 < config.max_deadline_seconds < config.default_deadline_seconds:
        yield (
            f"--default-deadline-seconds {config.default_deadline_seconds:g} is more than"
            f" --max-deadline-seconds {config.max_deadline_seconds:g}"
        )


def _devices(config: "ServerConfig") -> Iterator[str]:
    if config.device == "cuda" and config.precision in ("int8", "fp32"):
        yield f"--precision {config.precision} is for the cpu, but --device is cuda"
    if config.device == "cpu" and config.precision == "fp16":
        yield "--precision fp16 is for cuda, but --device is cpu"


def _addresses(config: "ServerConfig") -> Iterator[str]:
    if not config.host:
        yield "--host is empty: 0.0.0.0 or [::] listens on all addresses"
    if config.admin and not config.admin_host:
        yield "--admin-host is empty: localhost answers this machine only"
    opened = ["port", "metrics_port"]
    opened += ["health_port"] if config.tls_certificate else []
    opened += ["admin_port"] if config.admin else []
    first: dict[int, str] = {}
    for name in opened:
        port = getattr(config, name)
        if port and first.setdefault(port, name) != name:
            yield f"{flag(first[port])} and {flag(name)} are both {port}"


def _tls(config: "ServerConfig") -> Iterator[str]:
    if config.tls_key and not config.tls_certificate:
        yield "--tls-key is given without --tls-certificate"
    if config.tls_certificate and not config.tls_key:
        yield "--tls-certificate is given without --tls-key"
    if config.tls_client_ca and not config.tls_certificate:
        yield "--tls-client-ca is given without --tls-certificate: clients prove themselves in TLS"


def _telemetry(config: "ServerConfig") -> Iterator[str]:
    if config.log_texts and config.request_log == "off":
        yield "--log-texts is on, but --request-log is off: texts are logged with their request"
    if config.exemplars and not config.otlp_endpoint:
        yield "--exemplars is on without --otlp-endpoint: only traces have trace ids"
    if config.otlp_endpoint and not _is_endpoint(config.otlp_endpoint):
        yield (
            f"--otlp-endpoint is {config.otlp_endpoint!r}: expected http://HOST:PORT, or https://"
            " with TLS"
        )


def _is_endpoint(text: str) -> bool:
    try:
        url = urlsplit(text)
        return url.scheme in ("http", "https") and bool(url.hostname and url.port)
    except ValueError:  # a port that is no number
        return False
