"""The certificate that the server shows, its key, and the authorities that clients must come from.

gRPC asks for them before every handshake, on threads of its own. The files are read each time (a
handshake costs far more), so that no clock and no time stamp decides whether they have changed.
"""

import logging
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc

from service.errors import ConfigError

_LOG = logging.getLogger(__name__)
_SUBJECT = "TLS"
# Two files are never replaced at once: a pair is taken when it hasn't changed while it was checked.
_MAX_READS = 3


@dataclass(frozen=True, slots=True)
class _Pems:
    """What is in the files; `client_ca` is empty where clients need no certificate."""

    chain: bytes
    key: bytes
    client_ca: bytes

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
        self._chain, self._key = Path(certificate), Path(key)
        self._client_ca = Path(client_ca) if client_ca else None
        self._lock = threading.Lock()
        self._fault = ""
        self._pems = self._read_checked()

    def credentials(self) -> grpc.ServerCredentials:
        """For a port; each new connection is shown what is in the files by then."""
        return grpc.dynamic_ssl_server_credentials(
            self._pems.configuration(),
            self.renewed,  # type: ignore[arg-type]  # the stubs don't know of None
            require_client_authentication=self._client_ca is not None,
        )

    def renewed(self) -> grpc.ServerCertificateConfiguration | None:
        """The certificates if they have changed, else None; called on any thread.

        Of files that can't be used the log hears once, and nothing changes.
        """
        with self._lock:
            try:
                if self._read() == self._pems:
                    self._fault = ""
                    return None
                self._pems = self._read_checked()
            except ConfigError as error:
                if self._fault != str(error):
                    self._fault = str(error)
                    _LOG.error("the certificates stay as they were: %s", error)
                return None
            self._fault = ""
        _LOG.info("new connections are shown the certificates that are in %s now", self._chain)
        return self._pems.configuration()

    def _read_checked(self) -> _Pems:
        for _ in range(_MAX_READS):
            pems = self._read()
            if faults := list(self._faults(pems)):
                raise ConfigError(_SUBJECT, faults)
            if self._read() == pems:
                return pems
        raise ConfigError(_SUBJECT, [f"{self._chain} or {self._key} changes while it is read"])

    def _read(self) -> _Pems:
        faults, contents = list[str](), list[bytes]()
        for flag, path in self._flags():
            try:
                contents.append(path.read_bytes())
            except OSError as error:
                faults.append(f"{flag} {path}: {error.strerror}")
        if faults:
            raise ConfigError(_SUBJECT, faults)
        return _Pems(*contents, *[b""] * (3 - len(contents)))

    def _flags(self) -> Iterator[tuple[str, Path]]:
        yield "--tls-certificate", self._chain
        yield "--tls-key", self._key
        if self._client_ca:
            yield "--tls-client-ca", self._client_ca

    def _faults(self, pems: _Pems) -> Iterator[str]:
        if _holds_certificates(pems.chain):
            yield from _pair_faults(self._chain, self._key)
        else:
            yield f"--tls-certificate {self._chain}: no certificate in PEM"
        if self._client_ca and not _holds_certificates(pems.client_ca):
            yield f"--tls-client-ca {self._client_ca}: no certificate in PEM"


def _holds_certificates(pem: bytes) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=pem.decode("ascii"))
    except (ssl.SSLError, ValueError):
        return False
    return True


def _pair_faults(chain: Path, key: Path) -> Iterator[str]:
    """Asked of the files, not of what was read: Python's OpenSSL takes a pair from nowhere else."""
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain, key, password=_refuse_password)
    except ssl.SSLError as error:
        if error.reason is None:
            yield f"--tls-key {key}: no private key in PEM"
        elif error.reason == "KEY_VALUES_MISMATCH":
            yield f"--tls-key {key}: not the key of the certificate in {chain}"
        else:
            yield f"--tls-certificate {chain}: {error.reason.lower().replace('_', ' ')}"
    except (OSError, ValueError) as error:
        yield f"--tls-key {key}: {error}"


def _refuse_password() -> str:
    """Otherwise OpenSSL asks for one at the terminal."""
    raise ValueError("it is encrypted; the server takes a key without a passphrase")
