"""`TranslateStream`: segments as they come, each answered as soon as it is translated.

    read ──> settings, once ──> segment ──> route, translate (many side by side) ──> write
     └─ waits while the window is full <────────── leaves the window ─────────────────┘

Segments are routed and translated as requests of one text are, but come into the queue as one
group, and wait where a request would be refused. What is owed to a client is bounded by the
`Window`: reading stops, and gRPC's flow control stops the client.
"""

from service.rpc.streaming.stream import Exchange, Stream

__all__ = ["Exchange", "Stream"]
