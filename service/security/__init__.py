"""Who may connect and who may call: TLS from PEM files, and bearer tokens from a file.

    certificates  the server's certificate, its key and the authorities of clients, as they rotate
    expiry        when one ends
    pem           the files that they are in, and what is wrong with those
    tokens        the tokens of a file, as it changes
    interceptor   refuses the calls that bring none of them, before their request is received
    refusal       the answer to an rpc that is not to be served

Files are read again while the server runs. One that is broken by then leaves in force what was
read before, and the log says why; one that is broken at the start stops the start.
"""

from service.security.certificates import Certificates
from service.security.interceptor import TokenInterceptor
from service.security.refusal import refusal
from service.security.tokens import Tokens

__all__ = ["Certificates", "TokenInterceptor", "Tokens", "refusal"]
