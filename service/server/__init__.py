"""The server process: ports, models, health, signals, and the order in which they come and go.

process   one process from its start to its exit code: signals, and what they ask for
server    the parts of a server, and how they start, work and stop
vitals    asks the engines how they are, and tells health
ports     addresses, gRPC's settings, and why an address can't be listened on
banner    what is served and where, and a command to try
exposure  what anybody on the network may do, for the log
"""

from service.server.process import run, serve
from service.server.server import Server

__all__ = ["Server", "run", "serve"]
