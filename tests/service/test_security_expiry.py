"""When the server's certificate ends, as its file has it and as the metrics tell it."""

import base64
import math
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from service.security import Certificates
from service.security.expiry import expiry
from tests.pems import Pems, replace
from tests.running_server import RunningServer, running_server

METRIC = "nmt_certificate_expiry_timestamp_seconds"
NEXT_YEAR = datetime.now(UTC).replace(microsecond=0) + timedelta(days=365)


@pytest.fixture
def pems(tmp_path: Path) -> Pems:
    return Pems(tmp_path)


@pytest.mark.parametrize(
    "end",
    [
        datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC),
        datetime(2049, 12, 31, 23, 59, 59, tzinfo=UTC),
        datetime(2050, 1, 1, tzinfo=UTC),  # written with four digits of the year from here on
        datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),  # never, by RFC 5280
    ],
)
def test_the_end_is_that_of_the_servers_own_certificate(end: datetime, pems: Pems) -> None:
    pems.rotate(end)
    chain = pems.certificate.read_bytes()
    assert expiry(chain) == end.timestamp()
    assert expiry(b"Subject: somebody\n" + chain + pems.ca.read_bytes()) == end.timestamp()


def test_one_that_can_not_be_told_is_not_a_number(pems: Pems) -> None:
    der = ssl.PEM_cert_to_DER_cert(pems.certificate.read_text())
    cut = [ssl.DER_cert_to_PEM_cert(der[:size]).encode() for size in range(len(der))]
    not_base64 = base64.b64encode(der) + b"-----BEGIN CERTIFICATE-----"
    assert all(math.isnan(expiry(content)) for content in (b"", b"\xff", not_base64))
    assert all(math.isnan(expiry(content)) for content in cut)


def test_files_that_can_not_be_used_do_not_change_when_the_certificate_ends(pems: Pems) -> None:
    certificates = Certificates(str(pems.certificate), str(pems.key))
    before = certificates.expires()
    replace(pems.certificate, b"half a certi")
    assert certificates.expires() == before
    pems.rotate(NEXT_YEAR)
    assert certificates.expires() == NEXT_YEAR.timestamp() != before


def test_the_metrics_tell_the_end_of_what_new_connections_are_shown(
    models: Path, pems: Pems, server: RunningServer
) -> None:
    with running_server(models, *pems.flags, "--health-port=0") as secured:
        assert secured.sample(METRIC) == expiry(pems.certificate.read_bytes())
        pems.rotate(NEXT_YEAR)
        assert secured.sample(METRIC) == NEXT_YEAR.timestamp()
    assert METRIC not in server.metrics(), "there is no certificate without TLS"
