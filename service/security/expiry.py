"""When a certificate ends. Python's ssl tells that of a peer's certificate only."""

import math


def expiry(chain: bytes) -> float:
    """When the first certificate of a PEM file ends, in Unix seconds; NaN if that can't be told."""
    # Some megabytes and a twentieth of a second, which a server without TLS doesn't need.
    from cryptography.x509 import load_pem_x509_certificates

    try:
        return load_pem_x509_certificates(chain)[0].not_valid_after_utc.timestamp()
    except ValueError:
        return math.nan
