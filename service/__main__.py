"""The command line: `python -m service serve | translate | score | check | admin | health`.

Exit codes: 0 done, 1 it failed, 2 it was asked for something wrong. Errors go to stderr.
"""

import logging
import signal
import sys
from collections.abc import Sequence

from service.commands import parser
from service.errors import ConfigError, StartupError, TranslationError
from service.logs import say


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns its exit code."""
    options = parser().parse_args(arguments)
    try:
        return int(options.run(options) or 0)
    except StartupError as error:
        for fault in error.faults:
            say(f"{error.subject}: {fault}", sys.stderr, logging.ERROR)
        return 2 if isinstance(error, ConfigError) else 1
    except TranslationError as error:
        print(f"{error.status}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main())
