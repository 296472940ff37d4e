"""The server's configuration: one field = one flag = one NMT_* variable = one key of a file.

`ServerConfig.max_rows` is `--max-rows` if given, else `NMT_MAX_ROWS` if set, else the key
`max_rows` of the TOML file, else the default; each is one line of `--help`.
A configuration that exists is valid: building one raises ConfigError with every fault at once.

    option         one field: its names, its text, its range
    fields         ServerConfig
    contradictions what the ranges of single fields can't say
    sources        flags, variables and the file, and what in them is no setting
    flags          for argparse
"""

from service.config.fields import DEFAULT_ADDRESS, ServerConfig
from service.config.flags import add_flags, given_flags, path
from service.config.sources import service_links

__all__ = [
    "DEFAULT_ADDRESS",
    "ServerConfig",
    "add_flags",
    "given_flags",
    "path",
    "service_links",
]
