"""The models to serve: a directory of bundles, loaded, warmed up and routed to."""

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from service.batching import QueueLimits
from service.bundle import Bundle, Manifest, read_bundle
from service.config import ServerConfig
from service.engine import load_engine
from service.errors import BundleError, ConfigError
from service.metrics import Metrics
from service.rpc.routing import Router
from service.translator import Translator

_LOG = logging.getLogger(__name__)
# Best first; a bundle need not have them all.
_PRECISIONS = {"cpu": ("int8", "fp32"), "cuda": ("fp16", "fp32")}
_USUAL_DEFAULT = "transformer-en-fr"


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A bundle that is served: its translator and how it runs here."""

    translator: Translator
    precision: str
    device: str

    @property
    def manifest(self) -> Manifest:
        return self.translator.manifest

    @property
    def name(self) -> str:
        return self.manifest.name

    @property
    def languages(self) -> tuple[str, str]:
        return self.manifest.languages


def bundle_folders(directory: Path) -> list[Path]:
    """The folders that hold a bundle, by name. Raises ConfigError if there is none."""
    if not directory.is_dir():
        raise ConfigError("models", [f"{directory} is not a directory"])
    # A name with a dot is one that is still being written, or that somebody put aside.
    folders = sorted(path.parent for path in directory.glob("[!.]*/bundle.json"))
    if not folders:
        raise ConfigError("models", [f"{directory} has no bundle; expected */bundle.json in it"])
    return folders


def read_bundles(directory: Path) -> list[Bundle]:
    """Reads and verifies every bundle of a directory.

    Raises ConfigError if there is none, BundleError with the faults of all of them, or if two have
    the same name.
    """
    bundles, faults = list[Bundle](), list[str]()
    for folder in bundle_folders(directory):
        try:
            bundles.append(read_bundle(folder))
        except BundleError as error:
            faults += [f"{folder.name}: {fault}" for fault in error.faults]
    faults += repeated_names(bundles)
    if faults:
        raise BundleError(str(directory), faults)
    return bundles


def repeated_names(bundles: Sequence[Bundle]) -> Iterator[str]:
    """A fault for every name that several bundles have."""
    for name, count in Counter(bundle.manifest.name for bundle in bundles).items():
        if count > 1:
            where = [bundle.directory.name for bundle in bundles if bundle.manifest.name == name]
            yield f"the name {name} is that of {', '.join(where)}; keep one of them"


def load_model(bundle: Bundle, config: ServerConfig, metrics: Metrics | None = None) -> ServedModel:
    """Loads and warms up a bundle; takes seconds. Device `auto` is cuda where that works.

    Raises ConfigError if the bundle lacks the precision or the machine the device, or if a beam of
    the bundle's own width has no room in a batch, and BundleError if the bundle can't be run.
    """
    beam_size = bundle.manifest.search.beam_size
    if beam_size > config.max_rows:
        name = bundle.manifest.name
        fault = f"is {config.max_rows}, but bundle {name} searches with {beam_size} beams"
        raise ConfigError("--max-rows", [fault])
    if config.device == "auto":
        try:
            return _load_on("cuda", bundle, config, metrics)
        except ConfigError as error:
            _LOG.debug("%s runs on the cpu: %s", bundle.manifest.name, error)
    return _load_on("cpu" if config.device == "auto" else config.device, bundle, config, metrics)


def try_out(bundle: Bundle) -> None:
    """Translates a sentence in every precision that a CPU runs. Raises BundleError."""
    for precision in _PRECISIONS["cpu"]:
        if precision in bundle.manifest.precisions:
            config = ServerConfig(device="cpu", precision=precision, workers=1)
            translator = load_model(bundle, config).translator
            try:
                with _blamed_on(bundle, f"{precision} can't translate"):
                    translator.translate(["Hello!"])
            finally:
                translator.engine.close()


def make_router(models: Sequence[ServedModel], default: str) -> Router[ServedModel]:
    """Routes to `default`, or without one to the usual default or the only model."""
    names = [model.name for model in models]
    if not default and _USUAL_DEFAULT in names:
        default = _USUAL_DEFAULT
    elif not default and len(names) == 1:
        default = names[0]
    return Router(models, default)


def _load_on(
    device: str, bundle: Bundle, config: ServerConfig, metrics: Metrics | None
) -> ServedModel:
    precision = _choose_precision(bundle.manifest, device, config.precision)
    observer = metrics.model(bundle.manifest.name) if metrics else None
    with _blamed_on(bundle, f"{precision} can't be loaded"):
        engine = load_engine(
            bundle,
            precision=precision,
            device=device,
            workers=config.workers,
            max_rows=config.max_rows,
            queue=QueueLimits(config.max_queue_sentences, config.max_queue_tokens),
            observer=observer,
        )
    try:
        with _blamed_on(bundle, f"{precision} can't run with {config.max_rows} rows"):
            engine.warm_up()
        with _blamed_on(bundle, "its tokenizers or its search can't be used"):
            translator = Translator(bundle, engine)
    except BundleError:
        engine.close()
        raise
    model = ServedModel(translator, precision, device)
    if metrics and observer:
        observer.watch(waiting=lambda: engine.num_waiting, rows=lambda: engine.num_rows)
        metrics.describe_model(
            model.name,
            bundle.manifest.version,
            model.languages,
            bundle.manifest.architecture,
            precision,
        )
    return model


@contextmanager
def _blamed_on(bundle: Bundle, what: str) -> Iterator[None]:
    """Names the bundle in whatever goes wrong with it."""
    try:
        yield
    except ConfigError:
        raise
    except BundleError as error:
        directory, subject = str(bundle.directory), error.subject
        prefix = "" if subject == directory else f"{subject}: "
        raise BundleError(directory, [prefix + fault for fault in error.faults]) from error
    except Exception as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise BundleError(str(bundle.directory), [f"{what}: {reason}"]) from error


def _choose_precision(manifest: Manifest, device: str, wanted: str) -> str:
    if wanted != "auto":
        return wanted  # checked against the bundle when its graphs are loaded
    for precision in _PRECISIONS[device]:
        if precision in manifest.precisions:
            return precision
    have, need = ", ".join(manifest.precisions), " or ".join(_PRECISIONS[device])
    raise ConfigError(f"model {manifest.name}", [f"{device} needs {need}, the bundle has {have}"])
