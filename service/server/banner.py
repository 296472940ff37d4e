"""What a server says when it serves: its models, its addresses, and a command to try."""

from collections.abc import Iterable, Iterator

from service.catalog import ServedModel
from service.config import ServerConfig


def banner(
    config: ServerConfig,
    models: Iterable[ServedModel],
    *,
    port: int,
    metrics_port: int,
    health_port: int,
    admin_port: int,
) -> str:
    """One line; a port that isn't open is 0."""
    served = ", ".join(
        f"{model.name} {model.version} "
        f"({' to '.join(model.languages)}, {model.precision} on {model.device})"
        for model in models
    )
    host = config.host
    places = [f"{host}:{port}", f"metrics on http://{host}:{metrics_port}/metrics"]
    if health_port:
        places.append(f"health on {host}:{health_port}")
    if admin_port:
        places.append(f"admin on {config.admin_host}:{admin_port}")
    command = " ".join(_command(config, port))
    return f"serving {served} on {', '.join(places)}; try: {command}"


def _command(config: ServerConfig, port: int) -> Iterator[str]:
    """A client's command line, with the flags that this server asks of it."""
    yield f"python -m service translate --server {config.local_host}:{port}"
    if config.tls_certificate:
        yield "--ca FILE"
    if config.tls_client_ca:
        yield "--certificate FILE --key FILE"
    if config.tokens_file:
        yield "--token-file FILE"
    yield '"I\'m home."'
