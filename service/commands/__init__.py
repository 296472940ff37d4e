"""The commands of `python -m service`: what each may be given, and what it runs.

The work is elsewhere: `server`, `client`, `catalog`. What a command doesn't need is not imported,
so that a client needs no onnxruntime.
"""

from service.commands.parser import parser

__all__ = ["parser"]
