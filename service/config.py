"""The server's configuration: one field = one flag = one NMT_* variable = one line of `--help`.

`ServerConfig.max_rows` is `--max-rows` if given, else `NMT_MAX_ROWS` if set, else the default.
A configuration that exists is valid: building one raises ConfigError with every fault at once.
"""

import argparse
import logging
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from service.errors import ConfigError

PREFIX = "NMT_"
_HOST, _PORT = "localhost", 50051
DEFAULT_ADDRESS = f"{_HOST}:{_PORT}"
_MAX_MILLISECONDS = (1 << 31) - 1  # in gRPC
_LOG = logging.getLogger(__name__)
# https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
_LINK_NAME = re.compile(
    r"NMT_(\w+_)?(SERVICE_HOST|SERVICE_PORT(_\w+)?"
    r"|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_PORT_NAME = re.compile(r"NMT_(\w+_)?PORT")
_LINK = re.compile(r"(tcp|udp|sctp)://")
_SWITCH = {"on": True, "true": True, "1": True, "off": False, "false": False, "0": False}


def _option(
    default: Any,
    help: str,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    choices: tuple[str, ...] = (),
) -> Any:
    """A field with all that its flag, its variable and its check need; bounds are inclusive."""
    meta = {"help": help, "low": low, "high": high, "choices": choices}
    return field(default=default, metadata=meta)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Everything an operator can choose. Raises ConfigError, listing all faults, when built."""

    models: Path = _option(Path("models"), "directory that holds one bundle per subdirectory")
    default_model: str = _option(
        "",
        "model that answers requests with neither a model nor languages; empty takes"
        " transformer-en-fr if it is served, else the only one",
    )
    host: str = _option(_HOST, "address to listen on; 0.0.0.0 or [::] for all")
    port: int = _option(_PORT, "gRPC port; 0 takes a free one", low=0, high=65535)
    metrics_port: int = _option(
        9464, "port of Prometheus' /metrics; 0 takes a free one", low=0, high=65535
    )
    device: str = _option(
        "auto", "auto takes cuda if there is one", choices=("auto", "cpu", "cuda")
    )
    precision: str = _option(
        "auto",
        "auto takes int8 on cpu and fp16 on cuda, and fp32 where a bundle lacks that",
        choices=("auto", "fp32", "int8", "fp16"),
    )
    workers: int = _option(
        0, "decoding threads per model; 0 takes as many as there are usable cores", low=0, high=256
    )
    max_rows: int = _option(
        64, "rows (sentences x beams) a worker decodes at once", low=1, high=4096
    )
    max_queue_sentences: int = _option(
        4096, "sentences that may wait per model; more are refused", low=1
    )
    max_queue_tokens: int = _option(
        262_144, "source tokens that may wait per model; more are refused", low=1
    )
    max_contents: int = _option(256, "texts in one request", low=1, high=100_000)
    max_characters: int = _option(
        1 << 20, "characters (code points) in all texts of one request together", low=1
    )
    max_message_bytes: int = _option(
        16 << 20, "bytes of one message, in either direction", low=1024, high=(1 << 31) - 1
    )
    default_deadline_seconds: float = _option(
        60.0, "deadline of a request that comes without one", low=0.001, high=86_400
    )
    drain_seconds: float = _option(
        25.0,
        "time to finish accepted requests after SIGTERM; keep it below the orchestrator's own",
        low=0,
        high=86_400,
    )
    max_connection_age_seconds: float = _option(
        0.0,
        "close connections of this age so that clients find new servers; 0 is never",
        low=0,
        high=_MAX_MILLISECONDS // 1000,
    )
    reflection: bool = _option(True, "answer grpcurl and ghz without a .proto file")
    log_level: str = _option(
        "info",
        "least severe messages that are logged",
        choices=("debug", "info", "warning", "error"),
    )

    def __post_init__(self) -> None:
        faults = list(_out_of_range(self))
        if self.device == "cuda" and self.precision == "int8":
            faults.append("--precision int8 is for the cpu, but --device is cuda")
        if self.device == "cpu" and self.precision == "fp16":
            faults.append("--precision fp16 is for cuda, but --device is cpu")
        if not self.host:
            faults.append("--host is empty: 0.0.0.0 or [::] listens on all addresses")
        if self.port == self.metrics_port != 0:
            faults.append(f"--port and --metrics-port are both {self.port}")
        if faults:
            raise ConfigError("configuration", faults)

    @classmethod
    def load(cls, flags: Mapping[str, str], environment: Mapping[str, str]) -> "ServerConfig":
        """The configuration from flags (text by field name) over NMT_* variables over defaults.

        Raises ConfigError with every variable that is unknown and every value that can't be read
        or is out of range.
        """
        values: dict[str, Any] = {}
        environment = _without_service_links(environment)
        faults = list(_unknown_variables(environment))
        for option in fields(cls):
            for origin, text in _given(option.name, flags, environment):
                try:
                    values[option.name] = _parse(option, text)
                except ValueError as error:
                    faults.append(f"{origin} is {text!r}: {error}")
        try:
            config = cls(**values)
        except ConfigError as error:
            faults.extend(error.faults)
        if faults:
            raise ConfigError("configuration", faults)
        return config


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Adds one flag per field to a parser; `given_flags` reads them back."""
    for option in fields(ServerConfig):
        default = _shown(option.default)
        parser.add_argument(
            _flag(option.name),
            default=argparse.SUPPRESS,
            metavar=_metavar(option),
            help=f"{option.metadata['help']} (default {default}) [{_variable(option.name)}]",
        )


def given_flags(arguments: argparse.Namespace) -> dict[str, str]:
    """The flags that were on the command line: text by field name."""
    names = {option.name for option in fields(ServerConfig)}
    return {name: text for name, text in vars(arguments).items() if name in names}


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _variable(name: str) -> str:
    return PREFIX + name.upper()


def _metavar(option: Field[Any]) -> str:
    if option.metadata["choices"]:
        return "|".join(option.metadata["choices"])
    names = {bool: "on|off", int: "N", float: "SECONDS", str: "TEXT"}
    return names.get(type(option.default), "PATH")


def _shown(value: object) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else str(value) or "empty"


def _given(
    name: str, flags: Mapping[str, str], environment: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Where the value of a field comes from, and its text; nothing if it keeps its default."""
    if name in flags:
        yield _flag(name), flags[name]
    elif _variable(name) in environment:
        yield _variable(name), environment[_variable(name)]


def _parse(option: Field[Any], text: str) -> Any:
    kind: type[Any] = type(option.default)
    if kind is bool:
        if text.lower() not in _SWITCH:
            raise ValueError("expected on or off")
        return _SWITCH[text.lower()]
    if kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            what = "a whole number" if kind is int else "a number"
            raise ValueError(f"expected {what}") from None
    return Path(text) if issubclass(kind, Path) else text


def _out_of_range(config: ServerConfig) -> Iterator[str]:
    for option in fields(config):
        value, meta = getattr(config, option.name), option.metadata
        if meta["choices"] and value not in meta["choices"]:
            yield f"{_flag(option.name)} is {value!r}: expected {', '.join(meta['choices'])}"
        elif isinstance(value, (int, float)) and not meta["low"] <= value <= meta["high"]:
            bounds = f"at least {meta['low']:g}"
            if meta["high"] < math.inf:
                bounds += f" and at most {meta['high']:.15g}"
            yield f"{_flag(option.name)} is {value}: expected {bounds}"


def _without_service_links(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables but for those that Kubernetes sets for Services called `nmt` or `nmt-…`."""
    links = {
        name
        for name, value in environment.items()
        if _LINK_NAME.fullmatch(name) or (_PORT_NAME.fullmatch(name) and _LINK.match(value))
    }
    if links:
        names = ", ".join(sorted(links))
        _LOG.warning("ignoring what Kubernetes set for a Service, no settings: %s", names)
    return {name: value for name, value in environment.items() if name not in links}


def _unknown_variables(environment: Mapping[str, str]) -> Iterator[str]:
    known = {_variable(option.name) for option in fields(ServerConfig)}
    for name in sorted(environment):
        if name.startswith(PREFIX) and name not in known:
            hint = get_close_matches(name, known, n=1)
            yield f"{name} is not a setting" + (f"; did you mean {hint[0]}?" if hint else "")
