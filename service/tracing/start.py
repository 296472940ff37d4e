"""From the configuration's words to a tracer."""

from service.errors import ConfigError
from service.tracing.spans import SilentTracer, Tracer


def start_tracer(endpoint: str, rate: float, version: str) -> Tracer:
    """Sends spans to an OTLP/gRPC endpoint, http://HOST:PORT or https://; to nobody if it is empty.

    rate: share of the traces begun here that are kept. version: of this service.
    Raises ConfigError if OpenTelemetry isn't installed.
    """
    if not endpoint:
        return SilentTracer()
    try:
        from service.tracing.otlp import OtlpTracer
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("opentelemetry"):
            raise
        fault = (
            f"{endpoint} needs {error.name}, which isn't installed:"
            " pip install 'attention-nmt[trace]'"
        )
        raise ConfigError("--otlp-endpoint", [fault]) from error
    return OtlpTracer(endpoint, rate, version)
