"""`ServerConfig`: everything an operator can choose, with its default, range and help."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from service.config.contradictions import contradictions
from service.config.option import option, out_of_range
from service.config.sources import collect
from service.errors import ConfigError

_HOST, _PORT = "localhost", 50051
DEFAULT_ADDRESS = f"{_HOST}:{_PORT}"
_ANY_HOST = ("0.0.0.0", "[::]", "::")
_OF_LOG = ("log_level", "log_format", "log_texts")
_MAX_PORT = 65535
_MAX_MILLISECONDS = (1 << 31) - 1  # in gRPC
_DAY = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Everything an operator can choose. Raises ConfigError, listing all faults, when built."""

    models: Path = option(Path("models"), "directory that holds one bundle per subdirectory")
    default_model: str = option(
        "",
        "model that answers requests with neither a model nor languages; empty takes"
        " transformer-en-fr if it is served, else the only one",
    )
    watch_seconds: float = option(
        10.0,
        "how often the models directory is looked at for new, changed and removed bundles; 0 is"
        " never: then SIGHUP or an admin rpc has it looked at",
        low=0,
        high=_DAY,
    )

    host: str = option(_HOST, "address to listen on; 0.0.0.0 or [::] for all")
    port: int = option(_PORT, "gRPC port; 0 takes a free one", low=0, high=_MAX_PORT)
    metrics_port: int = option(
        9464, "port of Prometheus' /metrics; 0 takes a free one", low=0, high=_MAX_PORT
    )
    health_port: int = option(
        50053,
        "port that answers health checks only, in plaintext for probes; opened where there is a"
        " TLS certificate; 0 takes a free one",
        low=0,
        high=_MAX_PORT,
    )
    admin: bool = option(False, "answer admin rpcs (reload, list, unload models)")
    admin_host: str = option("localhost", "address of the admin rpcs, which are not for clients")
    admin_port: int = option(
        50052, "port of the admin rpcs; 0 takes a free one", low=0, high=_MAX_PORT
    )
    reflection: bool = option(True, "answer grpcurl and ghz without a .proto file")

    tls_certificate: str = option(
        "",
        "PEM file of the server's certificate chain, read again when it changes; empty is"
        " plaintext",
        metavar="FILE",
    )
    tls_key: str = option("", "PEM file of the certificate's private key", metavar="FILE")
    tls_client_ca: str = option(
        "",
        "PEM file of the authorities whose clients may connect (mutual TLS); empty asks clients for"
        " no certificate",
        metavar="FILE",
    )
    tokens_file: str = option(
        "",
        "file of bearer tokens or API keys, one a line, read again when it changes; empty lets"
        " everybody call",
        metavar="FILE",
    )

    device: str = option("auto", "auto takes cuda if there is one", choices=("auto", "cpu", "cuda"))
    precision: str = option(
        "auto",
        "auto takes fp16 on cuda, and on cpu int8, or fp32 where a bundle lacks that",
        choices=("auto", "fp32", "int8", "fp16"),
    )
    kernels: str = option(
        "auto",
        "auto takes this service's own kernels for int8 graphs on the cpu where they were built (a"
        " C compiler was there at installation), off leaves every operator to onnxruntime",
        choices=("auto", "off"),
    )
    workers: int = option(
        0, "decoding threads per model; 0 takes as many as there are usable cores", low=0, high=256
    )
    max_rows: int = option(
        96, "rows (sentences x beams) a worker decodes at once", low=1, high=4096
    )

    max_queue_sentences: int = option(
        4096, "sentences that may wait per model; more are refused", low=1
    )
    max_queue_tokens: int = option(
        262_144, "source tokens that may wait per model; more are refused", low=1
    )
    max_contents: int = option(256, "texts in one request", low=1, high=100_000)
    max_content_characters: int = option(1 << 20, "characters (code points) in one text", low=1)
    max_characters: int = option(
        1 << 20, "characters (code points) in all texts of one request together", low=1
    )
    max_message_bytes: int = option(
        16 << 20, "bytes of one message, in either direction", low=1024, high=(1 << 31) - 1
    )
    default_deadline_seconds: float = option(
        60.0, "deadline of a request that comes without one", low=0.001, high=_DAY
    )
    max_deadline_seconds: float = option(
        0.0, "a request's longer deadline is shortened to this; 0 leaves it", low=0, high=_DAY
    )

    shutdown_delay_seconds: float = option(
        0.0,
        "after SIGTERM, time in which new requests are still answered while health says"
        " NOT_SERVING: load balancers need a moment to notice",
        low=0,
        high=_DAY,
    )
    drain_seconds: float = option(
        25.0,
        "then time to finish accepted requests; keep both together below the orchestrator's own",
        low=0,
        high=_DAY,
    )
    max_connection_age_seconds: float = option(
        0.0,
        "close connections of this age so that clients find new servers; 0 is never",
        low=0,
        high=_MAX_MILLISECONDS // 1000,
    )

    log_level: str = option(
        "info",
        "least severe messages that are logged",
        choices=("debug", "info", "warning", "error"),
    )
    log_format: str = option(
        "text", "lines for people, or one JSON object a line", choices=("text", "json")
    )
    request_log: str = option(
        "failed",
        "requests that are logged, one line each: none, those that failed, or all",
        choices=("off", "failed", "all"),
    )
    request_log_rate: float = option(
        1.0,
        "share of the requests that succeeded which --request-log all logs",
        low=0,
        high=1,
        metavar="SHARE",
    )
    log_texts: bool = option(False, "log what users sent with their requests")
    otlp_endpoint: str = option(
        "",
        "collector that gets traces over OTLP/gRPC, such as http://localhost:4317; empty traces"
        " nothing",
        metavar="URL",
    )
    trace_rate: float = option(
        1.0,
        "share of the traces begun here that are kept; a caller's own decision stands",
        low=0,
        high=1,
        metavar="SHARE",
    )
    exemplars: bool = option(
        False, "trace ids on the latency histogram, where OpenMetrics is asked for"
    )

    def __post_init__(self) -> None:
        faults = [
            fault
            for field in fields(self)
            for fault in out_of_range(field, getattr(self, field.name))
        ]
        faults += contradictions(self)
        if faults:
            raise ConfigError("configuration", faults)

    @property
    def local_host(self) -> str:
        """Where clients on this machine reach the server."""
        return "localhost" if self.host in _ANY_HOST else self.host

    @classmethod
    def load(
        cls,
        flags: Mapping[str, str],
        environment: Mapping[str, str],
        file: Path | None = None,
    ) -> "ServerConfig":
        """The configuration from flags (text by field name) over NMT_* variables over a TOML file.

        Without a `file`, NMT_CONFIG may name it. Raises ConfigError with every key and variable
        that is unknown and every value that can't be read, is out of range or contradicts another.
        """
        values, faults = collect(fields(cls), flags, environment, file)
        try:
            config = cls(**values)
        except ConfigError as error:
            faults.extend(error.faults)
        if faults:
            raise ConfigError("configuration", faults)
        return config

    @classmethod
    def of_log(
        cls,
        flags: Mapping[str, str],
        environment: Mapping[str, str],
        file: Path | None = None,
    ) -> "ServerConfig":
        """What is said of the log, and else the defaults; never fails.

        Faults, which `load` raises, are to be logged in the way that is asked for.
        """
        options = [option for option in fields(cls) if option.name in _OF_LOG]
        values, _ = collect(options, flags, environment, file)
        faulty = {
            option.name
            for option in options
            if option.name in values and any(out_of_range(option, values[option.name]))
        }
        return cls(**{name: value for name, value in values.items() if name not in faulty})
