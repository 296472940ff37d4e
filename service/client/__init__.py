"""Clients of the service: over gRPC, or in this process without a server.

`Client` imports neither numpy nor onnxruntime, so that a tool that only talks to a server starts
fast. `service.client.local.LocalClient` has the same methods over bundles on disk. `Access` says
how to reach a server: TLS, certificates, a token.
"""

from service.client.access import Access
from service.client.remote import Client
from service.config import DEFAULT_ADDRESS

__all__ = ["DEFAULT_ADDRESS", "Access", "Client"]
