"""When a certificate ends. Python's ssl tells that of a peer's certificate only."""

import math
import re
import ssl

_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def expiry(chain: bytes) -> float:
    """When the first certificate of a PEM file ends, in Unix seconds; NaN if that can't be told."""
    # A server without TLS needs none of it.
    from pyasn1.codec.der.decoder import decode
    from pyasn1.error import PyAsn1Error
    from pyasn1_modules.rfc5280 import Certificate

    try:
        first = _PEM.search(chain.decode("ascii", errors="replace"))
        der = ssl.PEM_cert_to_DER_cert(first[0]) if first else b""
        certificate, _ = decode(der, asn1Spec=Certificate())
        end = certificate["tbsCertificate"]["validity"]["notAfter"].getComponent()
        return float(end.asDateTime.timestamp())
    except (PyAsn1Error, ValueError):
        return math.nan
