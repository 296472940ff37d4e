"""What anybody who reaches a server may do, said in the log when it starts."""

from collections.abc import Iterator

from service.config import ServerConfig
from service.server.ports import is_local


def exposures(config: ServerConfig) -> Iterator[str]:
    """A warning for each address that others reach and that is less than closed."""
    if not is_local(config.host):
        yield from _exposures(config, config.host, "translate")
    if config.admin and not is_local(config.admin_host):
        yield from _exposures(config, config.admin_host, "load and unload models")


def _exposures(config: ServerConfig, host: str, what: str) -> Iterator[str]:
    if not (config.tokens_file or config.tls_client_ca):
        yield (
            f"{host} is not this machine only: whoever reaches it may {what};"
            " --tokens-file or --tls-client-ca lets known clients in only"
        )
    if not config.tls_certificate:
        yield (
            f"{host} is not this machine only: texts{' and tokens' if config.tokens_file else ''}"
            " cross the network in plaintext; --tls-certificate and --tls-key encrypt them"
        )
