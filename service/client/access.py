"""How clients reach a server: in plaintext or over TLS, with a token or without.

    nothing given             plaintext
    --tls                     TLS, with the authorities that the system trusts
    --ca                      TLS, with those of a file
    --certificate and --key   the client's own, for servers that ask for one (mutual TLS)
    --token-file, NMT_TOKEN   a token; never a flag, which `ps` would show

A token goes over TLS, or in plaintext to this machine: gRPC refuses every other connection.
"""

import argparse
import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import grpc

from service.config.sources import TOKEN_VARIABLE
from service.errors import ConfigError
from service.security.pem import SUBJECT, PemFile, authority_faults, pair_faults, read_pems
from service.security.tokens import parse_tokens, token_faults

_TOKEN_FLAG = "--token-file"
# What gRPC says of a connection that fails, and the way out; the first that is found counts.
_HINTS = (
    ("WRONG_VERSION_NUMBER", "the server speaks no TLS here: leave --tls and --ca away"),
    ("CERTIFICATE_VERIFY_FAILED", "nobody trusted signed the server's certificate: give --ca FILE"),
    (
        "Hostname Verification Check failed",
        "the server's certificate is for another name: use that, or give it as --tls-server-name",
    ),
    ("Connection refused", "no server listens there: start one, or give another --server"),
    ("neither UDS or TCP loopback", "a token leaves the machine over TLS only: give --tls or --ca"),
)
_CLOSED = ("Socket closed", "reset by peer", "Broken pipe")


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What to trust and what to show; `Access()` is plaintext without a token.

    ca: PEM file of the authorities that the server's certificate must come from; any of `tls`, `ca`
        and `certificate` is TLS, without `ca` with the authorities that the system trusts.
    certificate, key: PEM files of the client's own certificate chain and its private key.
    server_name: the name in the server's certificate, where that isn't the address's.
    token: what the server wants to hear of its callers.
    Raises ConfigError with every contradiction.
    """

    tls: bool = False
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    server_name: str = ""
    token: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if faults := list(self._contradictions()):
            raise ConfigError(SUBJECT, faults)
        if faults := list(token_faults(self.token)) if self.token else []:
            raise ConfigError("token", faults)

    @property
    def is_tls(self) -> bool:
        return self.tls or bool(self.ca or self.certificate)

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """What every rpc must be sent with."""
        return (("authorization", f"Bearer {self.token}"),) if self.token else ()

    def channel(self, address: str, options: Sequence[tuple[str, int]] = ()) -> grpc.Channel:
        """A channel to a server; it connects at the first rpc.

        Raises ConfigError, naming each file that can't be used and why.
        """
        more: list[tuple[str, int | str]] = [*options]
        if self.server_name:
            more.append(("grpc.ssl_target_name_override", self.server_name))
        if self.is_tls:
            return grpc.secure_channel(address, self._credentials(), more)
        if self.token:
            local = grpc.local_channel_credentials(grpc.LocalConnectionType.LOCAL_TCP)
            return grpc.secure_channel(address, local, more)
        return grpc.insecure_channel(address, more)

    def hint(self, code: grpc.StatusCode, message: str) -> str:
        """What may be missing here, if an rpc ended like this; else empty."""
        if code is grpc.StatusCode.UNAUTHENTICATED:
            if self.token:
                return f"what was sent is that of {_TOKEN_FLAG} or {TOKEN_VARIABLE}"
            return f"here: give {_TOKEN_FLAG} FILE, or set {TOKEN_VARIABLE}"
        if code is not grpc.StatusCode.UNAVAILABLE or "failed to connect" not in message:
            return ""
        if any(sign in message for sign in _CLOSED):
            return self._closed_hint()
        return next((hint for sign, hint in _HINTS if sign in message), "")

    def _closed_hint(self) -> str:
        """A server that wants what it isn't shown hangs up without a word."""
        if not self.is_tls:
            return "if the server speaks TLS, give --tls or --ca FILE"
        if not self.certificate:
            return "if the server wants a certificate of its clients, give --certificate and --key"
        return f"the server may not trust the authority of {self.certificate}"

    def _contradictions(self) -> Iterator[str]:
        if self.certificate and not self.key:
            yield "--certificate is given without --key"
        if self.key and not self.certificate:
            yield "--key is given without --certificate"
        if self.server_name and not self.is_tls:
            yield "--tls-server-name is given without --tls or --ca"

    def _credentials(self) -> grpc.ChannelCredentials:
        ca, chain, key = (
            path and PemFile(flag, path)
            for flag, path in (
                ("--ca", self.ca),
                ("--certificate", self.certificate),
                ("--key", self.key),
            )
        )
        files = [file for file in (ca, chain, key) if file]
        pems = dict(zip(files, read_pems(files), strict=True))
        faults = list(authority_faults(ca, pems[ca])) if ca else []
        if chain and key:
            faults += pair_faults(chain, key, pems[chain])
        if faults:
            raise ConfigError(SUBJECT, faults)
        return grpc.ssl_channel_credentials(
            pems[ca] if ca else _system_authorities(),
            pems[key] if key else None,
            pems[chain] if chain else None,
        )


PLAINTEXT = Access()


def access_from(options: argparse.Namespace, environment: Mapping[str, str]) -> Access:
    """What the flags of a command and its environment say. Raises ConfigError."""
    return Access(
        tls=options.tls,
        ca=options.ca,
        certificate=options.certificate,
        key=options.key,
        server_name=options.tls_server_name,
        token=_token(options.token_file, environment),
    )


def _token(file: Path | None, environment: Mapping[str, str]) -> str:
    """The token of the file, else of the variable, else none."""
    if file is None:
        return environment.get(TOKEN_VARIABLE, "").strip()
    try:
        tokens = parse_tokens(file.read_bytes(), file, _TOKEN_FLAG)
    except OSError as error:
        raise ConfigError(_TOKEN_FLAG, [f"{file}: {error.strerror}"]) from error
    if len(tokens) > 1:
        raise ConfigError(_TOKEN_FLAG, [f"{file} holds {len(tokens)} tokens; a caller has one"])
    return tokens[0]


def _system_authorities() -> bytes | None:
    """The authorities that OpenSSL finds on this system; None takes those that gRPC brings."""
    paths = ssl.get_default_verify_paths()
    if paths.cafile:
        return Path(paths.cafile).read_bytes()
    # Certificates in a folder go by their hash: `002c0b4f.0`.
    hashed = sorted(Path(paths.capath).glob("*.[0-9]")) if paths.capath else []
    return b"".join(file.read_bytes() for file in hashed) or None
