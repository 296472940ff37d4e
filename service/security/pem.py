"""PEM files as flags name them, and what is wrong with them; for servers and for clients."""

import ssl
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from service.errors import ConfigError
from service.reading import read_regular

SUBJECT = "TLS"


@dataclass(frozen=True, slots=True)
class PemFile:
    """A file, and the flag that gives it."""

    flag: str
    path: Path

    def __str__(self) -> str:
        return f"{self.flag} {self.path}"


def read_pems(files: Iterable[PemFile]) -> list[bytes]:
    """What is in the files. Raises ConfigError, naming every one that can't be read."""
    faults, contents = list[str](), list[bytes]()
    for file in files:
        try:
            contents.append(read_regular(file.path))
        except OSError as error:
            faults.append(f"{file}: {error.strerror}")
    if faults:
        raise ConfigError(SUBJECT, faults)
    return contents


def authority_faults(file: PemFile, pem: bytes) -> Iterator[str]:
    """The fault of what was read from a file that is to hold certificates, if it has none."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=pem.decode("ascii"))
    except (ssl.SSLError, ValueError):
        yield f"{file}: no certificate in PEM"


def pair_faults(chain: PemFile, key: PemFile, pem: bytes) -> Iterator[str]:
    """The fault of a certificate chain, of which `pem` was read, and its private key.

    Asked of the files, not of what was read: Python's OpenSSL takes a pair from nowhere else.
    """
    if faults := list(authority_faults(chain, pem)):
        yield from faults
        return
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(chain.path, key.path, password=_refuse_password)
    except ssl.SSLError as error:
        if error.reason is None:
            yield f"{key}: no private key in PEM"
        elif error.reason == "KEY_VALUES_MISMATCH":
            yield f"{key}: not the key of the certificate in {chain.path}"
        else:
            yield f"{chain}: {error.reason.lower().replace('_', ' ')}"
    except (OSError, ValueError) as error:
        yield f"{key}: {error}"


def _refuse_password() -> str:
    """Otherwise OpenSSL asks for one at the terminal."""
    raise ValueError("it is encrypted; only a key without a passphrase will do")
