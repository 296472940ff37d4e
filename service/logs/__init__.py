"""What the process says about itself and about each request, as lines of text or of JSON.

    set_up_logging  once, before anything is logged
    say             what stands alone, on stdout or stderr, unless the log is for programs
    RequestLog      at most one line about an rpc, when it has ended
    RequestRecord   what is known of the rpc; `current_request` is that of the running task

Lines of code that serves an rpc carry its request id. Users' text is in none of them unless
`log_texts` asks for it. Knows neither gRPC nor the configuration.
"""

from service.logs.formats import say, set_up_logging
from service.logs.request import RequestLog, RequestRecord, current_request, request_id

__all__ = [
    "RequestLog",
    "RequestRecord",
    "current_request",
    "request_id",
    "say",
    "set_up_logging",
]
