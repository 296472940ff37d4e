"""Files of tokens and certificates: what is read, what is refused, and what a change does."""

import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from service.errors import ConfigError
from service.security import Certificates, Tokens
from tests.gate import Clock
from tests.pems import Pems, encrypted, replace

TOKEN, OTHER = "a-token-of-23-characters", "0123456789abcdef"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tokens"
    path.write_text(f"{TOKEN}\n")
    return path


def pipe(path: Path) -> None:
    """Puts a pipe in the place of a file; nobody ever writes to it."""
    path.unlink()
    os.mkfifo(path)


@pytest.fixture
def pems(tmp_path: Path) -> Pems:
    return Pems(tmp_path)


def test_a_token_is_a_line_that_is_no_comment(file: Path) -> None:
    file.write_text(f"# the web shop's, since May\n  {TOKEN}\r\n\n{OTHER}")
    tokens = Tokens(file)
    assert TOKEN in tokens and OTHER in tokens
    assert "# the web shop's, since May" not in tokens
    assert "" not in tokens and TOKEN[:-1] not in tokens


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("", "holds no token"),
        ("# none yet\n\n", "holds no token"),
        (f"{TOKEN}\nfifteen-letters", "line 2: a token of 15 characters; it must have at least 16"),
        ("a token with spaces", "line 1: a token has printable ASCII characters only"),
        ("jeton-très-secret", "line 1: a token has printable ASCII characters only"),
    ],
)
def test_a_file_with_a_fault_is_refused_and_not_quoted(
    file: Path, content: str, fault: str
) -> None:
    file.write_text(content)
    with pytest.raises(ConfigError) as caught:
        Tokens(file)
    assert f"{file}" in str(caught.value) and fault in str(caught.value)
    assert not any(line in str(caught.value) for line in content.splitlines() if line)


@pytest.mark.parametrize(("path", "reason"), [(".", "directory"), ("nowhere", "No such file")])
def test_a_file_of_tokens_that_can_not_be_read_is_refused(
    tmp_path: Path, path: str, reason: str
) -> None:
    with pytest.raises(ConfigError, match=f"--tokens-file: {tmp_path / path}: .*{reason}"):
        Tokens(tmp_path / path)


def test_a_changed_file_of_tokens_holds_after_a_second(file: Path) -> None:
    clock = Clock()
    tokens = Tokens(file, clock)
    file.write_text(OTHER)
    clock.now = 0.9
    assert TOKEN in tokens and OTHER not in tokens
    clock.now = 1.0
    assert TOKEN not in tokens and OTHER in tokens


@pytest.mark.parametrize(
    "spoil",
    [Path.unlink, pipe, lambda file: file.write_text(""), lambda file: file.write_text("short")],
)
def test_a_file_of_tokens_that_is_spoiled_later_changes_nothing_and_is_logged_once(
    spoil: Callable[[Path], object], file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    tokens = Tokens(file, clock)
    spoil(file)
    for clock.now in (1.0, 2.0, 3.0):
        assert TOKEN in tokens and OTHER not in tokens
    [record] = caplog.records
    assert record.levelno == logging.ERROR and str(file) in record.getMessage()
    assert "short" not in record.getMessage()
    file.unlink(missing_ok=True)
    file.write_text(OTHER)
    clock.now = 4.0
    assert OTHER in tokens and TOKEN not in tokens


def test_no_token_is_kept_in_memory(file: Path) -> None:
    assert TOKEN not in repr(vars(Tokens(file)))


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda pems: pems.certificate.unlink(), "--tls-certificate {certificate}: No such file"),
        (lambda pems: pems.key.unlink(), "--tls-key {key}: No such file"),
        (lambda pems: pems.client_ca.unlink(), "--tls-client-ca {client_ca}: No such file"),
        (lambda pems: pipe(pems.key), "--tls-key {key}: not a regular file"),
        (lambda pems: pems.certificate.write_text("?"), "--tls-certificate {certificate}: no cert"),
        (lambda pems: pems.key.write_text("?"), "--tls-key {key}: no private key"),
        (
            lambda pems: pems.client_ca.write_text("é"),
            "--tls-client-ca {client_ca}: no certificate",
        ),
        (
            lambda pems: pems.key.write_bytes(pems.client().private_key_pem.bytes()),
            "--tls-key {key}: not the key of the certificate in {certificate}",
        ),
        (
            lambda pems: pems.key.write_bytes(encrypted(pems.key.read_bytes())),
            "--tls-key {key}: it is encrypted",
        ),
    ],
)
def test_each_file_that_can_not_be_used_is_named_with_the_reason(
    spoil: Callable[[Pems], object], fault: str, pems: Pems
) -> None:
    spoil(pems)
    with pytest.raises(ConfigError) as caught:
        Certificates(str(pems.certificate), str(pems.key), str(pems.client_ca))
    [only] = caught.value.faults
    assert fault.format(**vars(pems)) in only


def test_every_missing_file_is_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        Certificates(f"{tmp_path}/a", f"{tmp_path}/b", f"{tmp_path}/c")
    assert len(caught.value.faults) == 3


def test_certificates_are_new_once_after_each_rotation(pems: Pems) -> None:
    certificates = Certificates(str(pems.certificate), str(pems.key), str(pems.client_ca)).shown()
    assert certificates.renewed() is None
    for _ in range(2):
        pems.rotate()
        assert certificates.renewed() is not None
        assert certificates.renewed() is None


def test_the_authorities_of_clients_rotate_as_well(pems: Pems) -> None:
    certificates = Certificates(str(pems.certificate), str(pems.key), str(pems.client_ca)).shown()
    replace(pems.client_ca, pems.authority.cert_pem.bytes())
    assert certificates.renewed() is not None


def test_a_broken_pair_changes_nothing_and_is_logged_once_with_the_reason(
    pems: Pems, caplog: pytest.LogCaptureFixture
) -> None:
    certificates = Certificates(str(pems.certificate), str(pems.key)).shown()
    good = pems.key.read_bytes()
    pems.key.write_text("half a k")
    assert certificates.renewed() is None and certificates.renewed() is None
    [record] = caplog.records
    assert f"stay as they were: TLS: --tls-key {pems.key}: no private key" in record.getMessage()
    pems.key.write_bytes(good)
    assert certificates.renewed() is None
    pems.rotate()
    assert certificates.renewed() is not None


def test_a_pipe_in_the_place_of_a_certificate_changes_nothing_and_is_logged_once(
    pems: Pems, caplog: pytest.LogCaptureFixture
) -> None:
    certificates = Certificates(str(pems.certificate), str(pems.key)).shown()
    pipe(pems.certificate)
    assert certificates.renewed() is None and certificates.renewed() is None
    [record] = caplog.records
    assert f"{pems.certificate}: not a regular file" in record.getMessage()


def test_every_port_hears_of_a_rotation_once(pems: Pems) -> None:
    certificates = Certificates(str(pems.certificate), str(pems.key))
    ports = [certificates.shown() for _ in range(2)]
    pems.rotate()
    assert all(port.renewed() is not None for port in ports)
    assert all(port.renewed() is None for port in ports)
