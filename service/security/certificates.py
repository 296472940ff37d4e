"""The certificate that the server shows, its key, and the authorities that clients must come from.

gRPC asks for them before every handshake, on threads of its own. The files are read each time (a
handshake costs far more), so that no clock and no time stamp decides whether they have changed.
"""

import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc

from service.errors import ConfigError
from service.security.expiry import expiry
from service.security.pem import SUBJECT, PemFile, authority_faults, pair_faults, read_pems

_LOG = logging.getLogger(__name__)
# Two files are never replaced at once: a pair is taken when it hasn't changed while it was checked.
_MAX_READS = 3


@dataclass(frozen=True, slots=True)
class _Pems:
    """What is in the files; `client_ca` is empty where clients need no certificate."""

    chain: bytes
    key: bytes
    client_ca: bytes = b""

    def configuration(self) -> grpc.ServerCertificateConfiguration:
        return grpc.ssl_server_certificate_configuration(
            [(self.key, self.chain)], self.client_ca or None
        )


class Certificates:
    """PEM files that may be replaced at any time; connections that exist keep what they began with.

    Without `client_ca` clients need no certificate of their own. Raises ConfigError, naming each
    file that can't be used and why.
    """

    def __init__(self, certificate: str, key: str, client_ca: str = "") -> None:
        self._chain = PemFile("--tls-certificate", Path(certificate))
        self._key = PemFile("--tls-key", Path(key))
        self._client_ca = PemFile("--tls-client-ca", Path(client_ca)) if client_ca else None
        self._lock = threading.Lock()
        self._fault = ""
        self._pems = self._read_checked()

    def credentials(self) -> grpc.ServerCredentials:
        """For one port; each new connection is shown what is in the files by then."""
        shown = self.shown()
        return grpc.dynamic_ssl_server_credentials(
            shown.configuration(),
            shown.renewed,  # type: ignore[arg-type]  # the stubs don't know of None
            require_client_authentication=self._client_ca is not None,
        )

    def shown(self) -> "ShownCertificates":
        """What a port begins with; each port must hear of a renewal by itself."""
        return ShownCertificates(self, self._pems)

    def expires(self) -> float:
        """When the certificate ends that a new connection is shown now, in Unix seconds.

        NaN if that can't be told. Called on any thread.
        """
        return expiry(self.read().chain)

    def read(self) -> _Pems:
        """What is in the files now; called on any thread.

        Of files that can't be used the log hears once, and nothing changes.
        """
        with self._lock:
            try:
                if self._read() != self._pems:
                    self._pems = self._read_checked()
                    path = self._chain.path
                    _LOG.info("new connections are shown the certificates that are in %s now", path)
                self._fault = ""
            except ConfigError as error:
                if self._fault != str(error):
                    self._fault = str(error)
                    _LOG.error("the certificates stay as they were: %s", error)
            return self._pems

    def _read_checked(self) -> _Pems:
        for _ in range(_MAX_READS):
            pems = self._read()
            if faults := list(self._faults(pems)):
                raise ConfigError(SUBJECT, faults)
            if self._read() == pems:
                return pems
        fault = f"{self._chain.path} or {self._key.path} changes while it is read"
        raise ConfigError(SUBJECT, [fault])

    def _read(self) -> _Pems:
        files = [self._chain, self._key, self._client_ca]
        return _Pems(*read_pems(file for file in files if file))

    def _faults(self, pems: _Pems) -> Iterator[str]:
        yield from pair_faults(self._chain, self._key, pems.chain)
        if self._client_ca:
            yield from authority_faults(self._client_ca, pems.client_ca)


class ShownCertificates:
    """What the new connections of one port are shown."""

    def __init__(self, certificates: Certificates, pems: _Pems) -> None:
        self._certificates = certificates
        self._pems = pems
        self._lock = threading.Lock()

    def configuration(self) -> grpc.ServerCertificateConfiguration:
        return self._pems.configuration()

    def renewed(self) -> grpc.ServerCertificateConfiguration | None:
        """The certificates if they have changed, else None; called on any thread."""
        with self._lock:
            if (pems := self._certificates.read()) == self._pems:
                return None
            self._pems = pems
            return pems.configuration()
