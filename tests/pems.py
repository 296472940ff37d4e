"""Certificates for tests of TLS: an authority of their own, and files as a server reads them."""

import os
from datetime import datetime
from pathlib import Path

import grpc
import trustme
from cryptography.hazmat.primitives import serialization

HOST = "localhost"


class Pems:
    """A folder with the server's certificate and key, and what clients need to trust them."""

    def __init__(self, folder: Path) -> None:
        self.authority = trustme.CA()
        self.certificate = folder / "tls.crt"
        self.key = folder / "tls.key"
        self.ca = folder / "ca.crt"
        self.ca.write_bytes(self.authority.cert_pem.bytes())
        self.client_ca = folder / "client-ca.crt"
        self.client_authority = trustme.CA()
        self.client_ca.write_bytes(self.client_authority.cert_pem.bytes())
        self.rotate()

    @property
    def flags(self) -> tuple[str, str]:
        return f"--tls-certificate={self.certificate}", f"--tls-key={self.key}"

    def rotate(self, not_after: datetime | None = None) -> None:
        """Replaces the certificate, then the key; a connection in between finds a broken pair."""
        issued = self.authority.issue_cert(HOST, not_after=not_after)
        chain = b"".join(pem.bytes() for pem in issued.cert_chain_pems)
        replace(self.certificate, chain)
        replace(self.key, issued.private_key_pem.bytes())

    def trusting(self, client: trustme.LeafCert | None = None) -> grpc.ChannelCredentials:
        """What a client needs who trusts the server, and shows a certificate if it has one."""
        own = (
            (client.private_key_pem.bytes(), client.cert_chain_pems[0].bytes())
            if client
            else (None, None)
        )
        return grpc.ssl_channel_credentials(self.authority.cert_pem.bytes(), *own)

    def client(self) -> trustme.LeafCert:
        """A client's certificate."""
        return self.client_authority.issue_cert("client.example")


def replace(path: Path, content: bytes) -> None:
    """Replaces a file at once, as those who rotate do."""
    beside = path.with_name("." + path.name)
    beside.write_bytes(content)
    os.replace(beside, path)


def encrypted(key: bytes) -> bytes:
    """The same private key, behind a passphrase."""
    loaded = serialization.load_pem_private_key(key, None)
    return loaded.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"a passphrase"),
    )
